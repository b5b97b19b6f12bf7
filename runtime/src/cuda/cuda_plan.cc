#include "cuda/cuda_plan.h"

#include <string>
#include <vector>

#include "bind.h"
#include "check/arithmetic.h"
#include "check/check_batch.h"
#include "check/check_options.h"
#include "check/fault.h"
#include "common/abi.h"
#include "common/shape.h"
#include "cuda/bounds.h"
#include "cuda/device_check.h"
#include "cuda/splits.h"
#include "cuda/workspace.h"
#include "generator/operator.h"

namespace kvjit::rt {
namespace {

constexpr std::int64_t kMaxGridX = 0x7fffffff;
constexpr std::int64_t kMaxGridY = 65535;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

class CudaPlan final : public Plan {
public:
    CudaPlan(Device& device, KernelPtr kernel, const kvjit_batch& batch, const Bounds& bounds,
             const kvjit_plan_options& options)
        : device_(device),
          kernel_(std::move(kernel)),
          bound_(bind_batch(kernel_->spec(), batch, batch_use(kernel_->spec(), options).stores)),
          bounds_(bounds),
          check_level_(options.host_batch != nullptr ? KVJIT_CHECK_NONE
                                                     : static_cast<kvjit_check_level>(options.check_level)),
          fixed_split_keys_(options.split_keys),
          stream_(options.stream),
          workspace_(device) {}

    gen::Result<void> prepare(const kvjit_plan_options& options) {
        gen::Result<ImageSet> images = kernel_->prepare(needed_programs());
        if (!images) return std::unexpected(images.error());
        images_ = *std::move(images);
        choose(options);
        if (auto fits = check_grid("batch_size", attends() ? decode_blocks() : 0, kMaxGridX); !fits) return fits;
        if (auto fits = check_grid("split_keys", splits_.count, kMaxGridY); !fits) return fits;
        if (auto fits = check_grid("num_kv_heads", attends() ? bound_.num_kv_heads : 0, kMaxGridY); !fits) return fits;
        if (auto ready = prepare_kernels(); !ready) return ready;
        const std::int64_t tiles = splits_.count > 1 ? decode_blocks() : 0;
        const std::int64_t rows = tiles != 0 ? tiles * shape(gen::ProgramKind::kAttendDecode).rows : 0;
        const WorkspaceLayout layout{
            .fault_bytes = checks() ? sizeof(abi::Fault) : 0,
            .counters_bytes = static_cast<std::size_t>(tiles) * sizeof(unsigned),
            .slopes_bytes = bound_.slopes.size() * sizeof(float),
            .partials_bytes =
                static_cast<std::size_t>(rows * splits_.count * (spec().head_dim + abi::kPartialTail)) * sizeof(float),
        };
        const auto taken = workspace_.take(layout, options.workspace, options.workspace_bytes, options.stream);
        return taken ? workspace_.write_slopes(bound_.slopes.data()) : taken;
    }

    gen::Result<void> run(const kvjit_tensors& tensors, std::int64_t layer_idx) override {
        if (auto checked = check_tensors(spec(), bound_.batch, bounds_.rows, bound_.stores, tensors, layer_idx);
            !checked) {
            return checked;
        }
        if (auto aligned = check_row_alignment(spec(), tensors); !aligned) return aligned;
        if (auto fits = check_rows(tensors); !fits) return fits;
        if (bound_.batch.batch_size == 0) return {};
        if (!gen::has_keys(spec())) return run_merge(tensors);
        if (checks()) {
            if (auto launched = run_check(tensors); !launched) return launched;
        }
        if (tensors.current_key.rank != 0) {
            if (auto stored = run_store(tensors, layer_idx); !stored) return stored;
        }
        return gen::loads(spec()) ? run_load(tensors, layer_idx) : run_attend(tensors, layer_idx);
    }

    gen::Result<void> synchronize() override {
        if (!checks()) return device_.synchronize(stream_);
        abi::Fault fault{};
        if (auto read = device_.download(&fault, workspace_.fault(), sizeof fault, stream_); !read) return read;
        if (fault.count == 0) return {};
        if (auto cleared = device_.zero(workspace_.fault(), sizeof fault, kAtOnce); !cleared) return cleared;
        return std::unexpected(fault_error(fault, spec()));
    }

    std::size_t workspace_bytes() const override { return workspace_.layout().bytes(); }
    std::string describe() const override;

private:
    const gen::KernelSpec& spec() const { return bound_.spec; }
    /// A program that the plan needs.
    const Image& image(gen::ProgramKind kind) const { return *images_[static_cast<std::size_t>(kind)]; }
    const LaunchShape& shape(gen::ProgramKind kind) const { return image(kind).launch(); }
    bool attends() const { return gen::attends(spec()) && bound_.batch.batch_size != 0; }
    /// Whether some sequence may have too many new tokens for decode.
    bool prefills() const { return attends() && bounds_.max_seqlen > decode_tokens(); }
    std::int64_t decode_tokens() const { return gen::decode_tokens(spec(), kernel_->target().backend); }

    /// Merge's only array is its seqstarts, from which it takes no more than the output has.
    bool checks() const {
        return check_level_ != KVJIT_CHECK_NONE && gen::has_keys(spec()) && bound_.batch.batch_size != 0;
    }

    void choose(const kvjit_plan_options& options) {
        splits_ = {kSplitUnit, 1, kSplitUnit};
        if (!attends()) return;
        const std::int64_t slots =
            std::int64_t{shape(gen::ProgramKind::kAttendDecode).blocks_per_sm} * device_.multiprocessors();
        splits_ = options.split_keys != 0 ? fixed_splits(options.split_keys, bounds_.max_kvlen)
                                          : choose_splits(decode_blocks(), slots, bounds_.max_kvlen, kSplitUnit);
    }

    std::uint32_t needed_programs() const {
        std::uint32_t programs = bound_.stores ? KVJIT_PROGRAM_STORE : 0;
        if (gen::loads(spec())) programs |= KVJIT_PROGRAM_LOAD;
        if (!gen::has_keys(spec())) programs |= KVJIT_PROGRAM_MERGE;
        if (attends()) programs |= KVJIT_PROGRAM_DECODE;
        if (prefills()) programs |= KVJIT_PROGRAM_PREFILL;
        if (checks()) programs |= KVJIT_PROGRAM_CHECK;
        return bound_.batch.batch_size == 0 ? 0 : programs;
    }

    /// What a launch needs of the device beside the image.
    gen::Result<void> prepare_kernels() {
        for (const ImagePtr& image : images_) {
            if (!image) continue;
            const auto shared_bytes = static_cast<unsigned>(image->launch().shared_bytes);
            if (auto ready = device_.prepare_kernel(image->entry(), shared_bytes); !ready) return ready;
        }
        return {};
    }

    /// Tiles of rows that a decode's grid has, one block each without splits.
    std::int64_t decode_blocks() const {
        const int tiles =
            decode_tiles(spec().group, static_cast<int>(decode_tokens()), shape(gen::ProgramKind::kAttendDecode).rows);
        return bound_.batch.batch_size * bound_.num_kv_heads * tiles;
    }

    abi::Launch launch_of(const kvjit_tensors& tensors) const {
        const kvjit_batch& batch = bound_.batch;
        const bool blocks = gen::has_cache(spec()) && spec().cache_mode == KVJIT_BLOCK_TABLE;
        const std::int64_t slots = !gen::has_cache(spec()) ? tensors.key.shape[0]
                                   : blocks                ? batch.num_blocks
                                                           : batch.max_tokens;
        const abi::Fault* fault = workspace_.fault();
        return {batch.batch_size, bound_.num_kv_heads, slots, blocks ? 0 : 1,
                fault != nullptr ? &fault->count : nullptr};
    }

    /// `blocks` follow from `argument`.
    static gen::Result<void> check_grid(const char* argument, std::int64_t blocks, std::int64_t limit) {
        if (blocks <= limit) return {};
        return gen::fail(KVJIT_BAD_ARGUMENT, argument,
                         text(argument, " leads to ", blocks, " blocks; a CUDA grid has room for ", limit), blocks,
                         limit);
    }

    /// Grids that follow from the tensors' rows, before anything is launched.
    gen::Result<void> check_rows(const kvjit_tensors& tensors) const {
        if (bound_.batch.batch_size == 0) return {};
        for (const kvjit_tensor* tensor : {&tensors.current_key, &tensors.key, &tensors.value}) {
            const bool moved = gen::loads(spec()) || tensor == &tensors.current_key;
            if (!moved || tensor->rank == 0) continue;
            const auto kind = tensor == &tensors.current_key ? gen::ProgramKind::kStore : gen::ProgramKind::kLoad;
            const std::int64_t warps = saturating_product(tensor->shape[0], bound_.num_kv_heads, std::int64_t{2});
            if (auto fits = check_grid("rows", warps / shape(kind).rows, kMaxGridX - 1); !fits) return fits;
        }
        if (!prefills()) return {};
        return check_grid("rows", prefill_blocks(tensors), kMaxGridX);
    }

    std::int64_t prefill_blocks(const kvjit_tensors& tensors) const {
        return prefill_tiles(tensors.query.shape[0], bound_.batch.batch_size, spec().group,
                             shape(gen::ProgramKind::kAttendPrefill).rows);
    }

    template <class Args>
    gen::Result<void> launch(gen::ProgramKind kind, std::int64_t x, std::int64_t y, const Args& args) {
        const LaunchShape& launched = shape(kind);
        const Grid grid{static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(launched.threads),
                        static_cast<unsigned>(launched.shared_bytes)};
        return device_.launch(image(kind).entry(), grid, &args, sizeof args, stream_);
    }

    /// A warp for each (row, kv head, key or value).
    template <class Args>
    gen::Result<void> launch_rows(gen::ProgramKind kind, std::int64_t rows, const Args& args) {
        const std::int64_t warps = rows * bound_.num_kv_heads * 2;
        return launch(kind, ceil_div(warps, shape(kind).rows), 1, args);
    }

    gen::Result<void> run_check(const kvjit_tensors& tensors) {
        abi::CudaCheckArgs args = bind_check(bound_, tensors, check_level_);
        args.fault = workspace_.fault();
        args.blocks = device_.multiprocessors();
        return launch(gen::ProgramKind::kCheck, args.blocks, 1, args);
    }

    gen::Result<void> run_store(const kvjit_tensors& tensors, std::int64_t layer_idx) {
        const abi::CudaStoreArgs args{launch_of(tensors), bind_store(bound_, tensors, layer_idx)};
        return launch_rows(gen::ProgramKind::kStore, tensors.current_key.shape[0], args);
    }

    gen::Result<void> run_load(const kvjit_tensors& tensors, std::int64_t layer_idx) {
        const kvjit_tensor& output = tensors.key.rank != 0 ? tensors.key : tensors.value;
        if (output.rank == 0) return {};
        const abi::CudaLoadArgs args{launch_of(tensors), bind_load(bound_, tensors, layer_idx)};
        return launch_rows(gen::ProgramKind::kLoad, output.shape[0], args);
    }

    gen::Result<void> run_attend(const kvjit_tensors& tensors, std::int64_t layer_idx) {
        abi::CudaAttendArgs args{launch_of(tensors), bind_attend(bound_, tensors, layer_idx, workspace_.partials()),
                                 fixed_split_keys_,  splits_.least,
                                 splits_.count,      workspace_.counters()};
        args.attend.slopes = workspace_.slopes();
        if (prefills()) {
            auto launched =
                launch(gen::ProgramKind::kAttendPrefill, prefill_blocks(tensors), bound_.num_kv_heads, args);
            if (!launched) return launched;
        }
        return launch(gen::ProgramKind::kAttendDecode, decode_blocks(), splits_.count, args);
    }

    gen::Result<void> run_merge(const kvjit_tensors& tensors) {
        const kvjit_tensor& output = tensors.attn_output;
        merge_items_[0] = {};
        merge_items_[0].token_end = output.shape[0];
        merge_items_[0].head_end = output.shape[1];
        const abi::MergeArgs merge = bind_merge(tensors, merge_items_);
        const abi::CudaMergeArgs args{launch_of(tensors), merge, merge_items_[0], bound_.batch.seqstarts};
        const std::int64_t warps = output.shape[0] * output.shape[1];
        return launch(gen::ProgramKind::kMerge, ceil_div(warps, shape(gen::ProgramKind::kMerge).rows), 1, args);
    }

    Device& device_;
    KernelPtr kernel_;
    BoundBatch bound_;
    Bounds bounds_;
    kvjit_check_level check_level_;  // of the check kernel
    std::int64_t fixed_split_keys_;  // 0: kernels share a tile's keys among the splits
    void* stream_;
    Workspace workspace_;
    ImageSet images_;
    Splits splits_{};
    std::vector<abi::MergeItem> merge_items_ = std::vector<abi::MergeItem>(1);
};

std::string CudaPlan::describe() const {
    std::string text = gen::print_spec(spec()) + "\n";
    const auto line = [&](std::string_view name, std::int64_t value) {
        text.append(name).append(": ").append(std::to_string(value)).append("\n");
    };
    line("sequences", bound_.batch.batch_size);
    line("multiprocessors", device_.multiprocessors());
    if (attends()) {
        line("decode blocks", decode_blocks() * splits_.count);
        line("decode splits", splits_.count);
        line("keys of a split, at most", splits_.keys);
        line("prefill rows of a block", prefills() ? shape(gen::ProgramKind::kAttendPrefill).rows : 0);
    }
    line("workspace bytes", static_cast<std::int64_t>(workspace_bytes()));
    return text;
}

}  // namespace

gen::Result<std::unique_ptr<Plan>> make_cuda_plan(Device& device, KernelPtr kernel, const kvjit_batch& batch,
                                                  const kvjit_plan_options& options) {
    if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
    if (auto checked = check_cuda_options(options, kSplitUnit); !checked) return std::unexpected(checked.error());
    const BatchUse use = batch_use(kernel->spec(), options);
    const gen::Result<Bounds> bounds = check_device_batch(kernel->spec(), batch, options.host_batch, use);
    if (!bounds) return std::unexpected(bounds.error());
    auto plan = std::make_unique<CudaPlan>(device, std::move(kernel), batch, *bounds, options);
    if (auto prepared = plan->prepare(options); !prepared) return std::unexpected(prepared.error());
    return plan;
}

}  // namespace kvjit::rt
