#include "cuda/cuda_plan.h"

#include <string>
#include <vector>

#include "call/bind.h"
#include "call/call_plan.h"
#include "check/arithmetic.h"
#include "check/check_batch.h"
#include "check/check_options.h"
#include "check/fault.h"
#include "common/abi.h"
#include "cuda/bounds.h"
#include "cuda/device_check.h"
#include "cuda/head_split.h"
#include "cuda/shape.h"
#include "cuda/splits.h"
#include "cuda/workspace.h"
#include "generator/decode_tokens.h"
#include "generator/operator.h"

namespace kvjit::rt {
namespace {

constexpr std::int64_t kMaxGridX = 0x7fffffff;
constexpr std::int64_t kMaxGridY = 65535;
/// More than any device has: it stands for what 64 bits don't hold, and sums of it and other parts don't overflow.
constexpr std::int64_t kManyBytes = std::int64_t{1} << 60;

class CudaPlan final : public CallPlan {
public:
    /// `slopes`: slopes_of.
    CudaPlan(Device& device, KernelPtr kernel, const BatchView& view, const LengthBounds& bounds,
             std::vector<float> slopes, const kvjit_plan_options& options)
        : CallPlan(std::move(kernel), view, bounds.rows),
          device_(device),
          bounds_(bounds),
          slopes_(std::move(slopes)),
          check_level_(options.host_batch != nullptr ? KVJIT_CHECK_NONE
                                                     : static_cast<kvjit_check_level>(options.check_level)),
          fixed_decode_keys_(options.split_keys),
          fixed_prefill_keys_(options.prefill_split_keys),
          stream_(options.stream),
          workspace_(device) {}

    gen::Result<void> prepare(const kvjit_plan_options& options) {
        if (auto ready = CallPlan::prepare(needed_programs()); !ready) return ready;
        if (attends()) {
            choose_for_decode();
            choose_for_prefill();
            if (auto fit = check_grids(); !fit) return fit;
        }
        if (auto ready = prepare_kernels(); !ready) return ready;
        // Prefill and decode run one after the other, and use the same memory.
        const SplitMemory decode = split_memory(decode_splits_, attends() ? decode_blocks() : 0, KVJIT_PROGRAM_DECODE);
        const SplitMemory prefill = split_memory(prefill_splits_, most_prefill_tiles(), KVJIT_PROGRAM_PREFILL);
        const WorkspaceLayout layout{
            .fault_bytes = needs(KVJIT_PROGRAM_CHECK) ? sizeof(abi::Fault) : 0,
            .counters_bytes = std::max(decode.counters, prefill.counters),
            .slopes_bytes = slopes_.size() * sizeof(float),
            .partials_bytes = std::max(decode.partials, prefill.partials),
        };
        const auto taken = workspace_.take(layout, options.workspace, options.workspace_bytes, options.stream);
        return taken ? workspace_.write_slopes(slopes_.data()) : taken;
    }

    gen::Result<void> synchronize() override {
        if (!needs(KVJIT_PROGRAM_CHECK)) return device_.synchronize(stream_);
        abi::Fault fault{};
        if (auto read = device_.download(&fault, workspace_.fault(), sizeof fault, stream_); !read) return read;
        if (fault.count == 0) return {};
        if (auto cleared = device_.zero(workspace_.fault(), sizeof fault, kAtOnce); !cleared) return cleared;
        return std::unexpected(fault_error(fault, batch()));
    }

    bool is_captured() override { return device_.is_capturing(stream_); }
    gen::Result<void> download(void* to, const void* from, std::size_t bytes) override {
        return bytes == 0 ? gen::Result<void>() : device_.download(to, from, bytes, stream_);
    }

    std::size_t workspace_bytes() const override { return workspace_.layout().bytes(); }
    std::string describe() const override;

private:
    /// The shape of a program that the plan needs.
    const LaunchShape& shape(kvjit_programs program) const { return image(program)->launch(); }
    bool attends() const { return needs(KVJIT_PROGRAM_DECODE); }
    bool prefills() const { return needs(KVJIT_PROGRAM_PREFILL); }
    std::int64_t decode_tokens() const { return gen::gpu_decode_tokens(kernel().spec()); }

    /// possible_programs without those that the bounds and the check level make needless.
    std::uint32_t needed_programs() const {
        std::uint32_t needless = 0;
        if (bounds_.max_seqlen <= decode_tokens()) needless |= KVJIT_PROGRAM_PREFILL;
        if (check_level_ == KVJIT_CHECK_NONE) needless |= KVJIT_PROGRAM_CHECK;
        return possible_programs() & ~needless;
    }

    void choose_for_decode() {
        const std::int64_t fixed = fixed_decode_keys_,
                           most = most_split_keys(decode_tokens(), fixed != 0 ? fixed : kSplitUnit);
        // Few sequences have more than one new token, and the blocks for further ones end at once without them.
        const Tiles decoded{decode_blocks(), decode_blocks_of(1)};
        decode_splits_ = fixed != 0 ? fixed_splits(fixed, most)
                                    : choose_splits(decoded, slots(KVJIT_PROGRAM_DECODE), most, kSplitUnit,
                                                    part_bytes(shape(KVJIT_PROGRAM_DECODE).rows));
    }

    void choose_for_prefill() {
        if (!prefills()) return;
        const std::int64_t fixed = fixed_prefill_keys_, rows = shape(KVJIT_PROGRAM_PREFILL).rows,
                           tokens = ceil_div(rows, std::int64_t{spec().group}) + 1,
                           seen = saturating_sum(tokens, most_keys_after()),
                           most = most_split_keys(seen, fixed != 0 ? fixed : kSplitUnit);
        if (fixed != 0) {
            prefill_splits_ = fixed_splits(fixed, most);
        } else if (fixed_decode_keys_ != 0) {
            // Fixed splits of long prompts would take gigabytes; whole ones don't depend on the batch either.
            prefill_splits_ = one_split(most, kSplitUnit);
        } else {
            const Tiles tiles{most_prefill_tiles(), std::min(most_prefill_tiles(), tiles_of_longest())};
            prefill_splits_ = choose_prefill_splits(tiles, slots(KVJIT_PROGRAM_PREFILL), most, rows, part_bytes(rows));
        }
    }

    /// Blocks of a program that run at once.
    std::int64_t slots(kvjit_programs program) const {
        return std::int64_t{shape(program).blocks_per_sm} * device_.multiprocessors();
    }

    /// Upper bound of the keys that a row sees after its position, where new tokens are.
    std::int64_t most_keys_after() const {
        // Sequences that decode are the first ones, and see no fewer than others.
        return std::min(batch().reach(0).after, bounds_.max_seqlen);
    }

    /// Upper bound of the keys seen by a tile's rows, and of those before them down to a multiple of `unit`. `tokens`:
    /// the most positions from the first row's to that of the last key that a row sees.
    std::int64_t most_split_keys(std::int64_t tokens, std::int64_t unit) const {
        const std::int64_t reach = saturating_sum(batch().score.window_left, tokens);
        return std::min(bounds_.max_kvlen, saturating_sum(reach, unit - 1));
    }

    /// Upper bound of prefill's tiles of rows, in all kv heads; lengths may change within the batch's own bounds.
    std::int64_t most_prefill_tiles() const {
        if (!prefills()) return 0;
        const std::int64_t sequences = batch().batch_size;
        const std::int64_t tokens =
            batch().max_seqlen != 0 ? std::min(abi::kMaxNewTokens, saturating_product(sequences, batch().max_seqlen))
                                    : bounds_.rows.query;
        return saturating_product(batch().num_kv_heads,
                                  prefill_tiles(tokens, sequences, spec().group, shape(KVJIT_PROGRAM_PREFILL).rows));
    }

    /// Prefill's tiles of rows if all sequences have as many new tokens as the longest may have.
    std::int64_t tiles_of_longest() const {
        const std::int64_t rows = saturating_product(bounds_.max_seqlen, std::int64_t{spec().group});
        return saturating_product(batch().batch_size, batch().num_kv_heads,
                                  ceil_div(rows, std::int64_t{shape(KVJIT_PROGRAM_PREFILL).rows}));
    }

    /// Of the partials of a tile's rows.
    std::int64_t part_bytes(std::int64_t rows) const {
        return rows * (spec().head_dim + abi::kPartialTail) * static_cast<std::int64_t>(sizeof(float));
    }

    struct SplitMemory {
        std::size_t counters = 0, partials = 0;  // bytes
    };
    SplitMemory split_memory(const Splits& splits, std::int64_t tiles, kvjit_programs program) const {
        if (splits.count == 1) return {};
        const auto bytes = [](auto... factors) {
            return static_cast<std::size_t>(std::min(saturating_product(factors...), kManyBytes));
        };
        return {bytes(tiles, std::int64_t{sizeof(unsigned)}),
                bytes(tiles, splits.count, part_bytes(shape(program).rows))};
    }

    /// Prepares what a launch needs of the device besides the image.
    gen::Result<void> prepare_kernels() {
        for (const ImagePtr& ready : images()) {
            if (!ready) continue;
            const auto shared_bytes = static_cast<unsigned>(ready->launch().shared_bytes);
            if (auto done = device_.prepare_kernel(ready->entry(), shared_bytes); !done) return done;
        }
        return {};
    }

    /// Tiles of rows in a decode's grid, of one block each without splits.
    std::int64_t decode_blocks() const { return decode_blocks_of(most_decode_tokens()); }
    /// Those that have rows if sequences have `tokens` new tokens each.
    std::int64_t decode_blocks_of(std::int64_t tokens) const {
        return saturating_product(batch().batch_size, batch().num_kv_heads, decode_tiles_of(tokens));
    }
    std::int64_t decode_tiles_of(std::int64_t tokens) const {
        return decode_tiles(spec().group, static_cast<int>(tokens), shape(KVJIT_PROGRAM_DECODE).rows);
    }
    /// Of a sequence that decode takes. (Blocks for tokens that no sequence has would end at once, and yet take time.)
    std::int64_t most_decode_tokens() const { return std::clamp<std::int64_t>(bounds_.max_seqlen, 1, decode_tokens()); }

    /// `slots`: the number of slots that entries index; for packed keys, their rows.
    abi::Launch launch_of(std::int64_t slots) const {
        const abi::Fault* fault = workspace_.fault();
        const CacheView& cache = batch().cache;
        return {.batch_size = batch().batch_size,
                .num_kv_heads = batch().num_kv_heads,
                .first_slot = cache.paging().entries == Entries::kAddresses ? 1 : 0,
                .num_slots = slots,
                .slots_of_token = cache.paging().blocks() ? 0 : 1,
                .block_tokens = cache.paging().blocks() ? cache.block_tokens() : abi::kNoLimit,
                .fault = fault != nullptr ? &fault->count : nullptr};
    }
    abi::Launch launch_of() const { return launch_of(batch().cache.num_slots()); }

    gen::Result<void> check_grids() const {
        const std::int64_t heads = batch().num_kv_heads;
        const bool fit_whole = heads <= kMaxGridY;
        if (auto fits = check_grid("batch_size", decode_blocks(), kMaxGridX); !fits) return fits;
        if (auto fits = check_grid("split_keys", decode_splits_.count, kMaxGridY); !fits) return fits;
        return check_grid(fit_whole && fixed_prefill_keys_ != 0 ? "prefill_split_keys" : "num_kv_heads",
                          saturating_product(heads, prefill_splits_.count), kMaxGridY);
    }

    /// `blocks` follow from `argument`, which the error names.
    static gen::Result<void> check_grid(const char* argument, std::int64_t blocks, std::int64_t limit) {
        if (blocks <= limit) return {};
        return gen::fail(KVJIT_BAD_ARGUMENT, argument,
                         text(argument, " leads to ", blocks, " blocks; a CUDA grid has room for ", limit), blocks,
                         limit);
    }

    gen::Result<void> check_run(const kvjit_tensors& tensors) override {
        if (auto aligned = check_row_alignment(batch(), tensors); !aligned) return aligned;
        return check_rows(tensors);
    }

    /// Checks grids that follow from the tensors' rows, before anything is launched.
    gen::Result<void> check_rows(const kvjit_tensors& tensors) const {
        if (batch().batch_size == 0) return {};
        for (const kvjit_tensor* tensor : {&tensors.current_key, &tensors.key, &tensors.value}) {
            const bool moved = gen::loads(spec()) || tensor == &tensors.current_key;
            if (!moved || tensor->rank == 0) continue;
            const auto program = tensor == &tensors.current_key ? KVJIT_PROGRAM_STORE : KVJIT_PROGRAM_LOAD;
            if (auto fits = check_grid("rows", row_blocks(program, tensor->shape[0]), kMaxGridX); !fits) return fits;
        }
        if (spec().op == KVJIT_OP_MERGE) return check_grid("rows", merge_blocks(tensors), kMaxGridX);
        if (!prefills()) return {};
        return check_grid("rows", prefill_blocks(tensors), kMaxGridX);
    }

    std::int64_t prefill_blocks(const kvjit_tensors& tensors) const {
        // Tokens of stride 0 take no memory: a query may have any number of them.
        const std::int64_t tokens = tensors.query.shape[0];
        if (saturating_product(tokens, std::int64_t{spec().group}) == kMaxInt64) return kMaxInt64;
        return prefill_tiles(tokens, batch().batch_size, spec().group, shape(KVJIT_PROGRAM_PREFILL).rows);
    }

    /// One warp for each (row, head).
    std::int64_t merge_blocks(const kvjit_tensors& tensors) const {
        const std::int64_t warps = saturating_product(merged_rows(tensors), tensors.attn_output.shape[1]);
        return ceil_div(warps, shape(KVJIT_PROGRAM_MERGE).rows);
    }

    template <class Args>
    gen::Result<void> launch(kvjit_programs program, std::int64_t x, std::int64_t y, const Args& args) {
        const LaunchShape& launched = shape(program);
        const Grid grid{static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(launched.threads),
                        static_cast<unsigned>(launched.shared_bytes)};
        return device_.launch(image(program)->entry(), grid, &args, sizeof args, stream_);
    }

    abi::HeadSplit head_split(std::int64_t rows) const {
        return split_heads(rows, batch().num_kv_heads, device_.multiprocessors());
    }
    /// Warps of head_split for each (row, key or value).
    std::int64_t row_blocks(kvjit_programs program, std::int64_t rows) const {
        const std::int64_t warps = saturating_product(rows, std::int64_t{head_split(rows).warps}, std::int64_t{2});
        return ceil_div(warps, shape(program).rows);
    }
    template <class Args>
    gen::Result<void> launch_rows(kvjit_programs program, std::int64_t rows, const Args& args) {
        return launch(program, row_blocks(program, rows), 1, args);
    }

    gen::Result<void> check_arrays(const kvjit_tensors& tensors) override {
        abi::CudaCheckArgs args = bind_check(batch(), tensors, check_level_);
        args.fault = workspace_.fault();
        args.blocks = device_.multiprocessors();
        return launch(KVJIT_PROGRAM_CHECK, args.blocks, 1, args);
    }

    gen::Result<void> store(const abi::StoreArgs& args, std::int64_t rows) override {
        return launch_rows(KVJIT_PROGRAM_STORE, rows, abi::CudaStoreArgs{launch_of(), args, head_split(rows)});
    }

    gen::Result<void> load(const abi::LoadArgs& args, std::int64_t rows) override {
        return launch_rows(KVJIT_PROGRAM_LOAD, rows, abi::CudaLoadArgs{launch_of(), args, head_split(rows)});
    }

    gen::Result<void> attend(abi::AttendArgs attend, const kvjit_tensors& tensors) override {
        attend.partials = workspace_.partials();
        attend.slopes = workspace_.slopes();
        const abi::Launch launched = gen::has_cache(spec()) ? launch_of() : launch_of(tensors.key.shape[0]);
        const auto args = [&](std::int64_t fixed, const Splits& splits) {
            return abi::CudaAttendArgs{launched,
                                       attend,
                                       fixed,
                                       splits.least,
                                       splits.count,
                                       workspace_.counters(),
                                       decode_tiles_of(most_decode_tokens())};
        };
        if (prefills()) {
            const std::int64_t y = batch().num_kv_heads * prefill_splits_.count;
            auto done =
                launch(KVJIT_PROGRAM_PREFILL, prefill_blocks(tensors), y, args(fixed_prefill_keys_, prefill_splits_));
            if (!done) return done;
        }
        return launch(KVJIT_PROGRAM_DECODE, decode_blocks(), decode_splits_.count,
                      args(fixed_decode_keys_, decode_splits_));
    }

    gen::Result<void> merge(const abi::MergeArgs& merge, const kvjit_tensors& tensors) override {
        const kvjit_tensor& output = tensors.attn_output;
        abi::MergeItem item{};
        item.token_end = merged_rows(tensors);
        item.head_end = output.shape[1];
        place_parts(tensors, {&item, 1});
        const abi::CudaMergeArgs args{launch_of(), merge, item, batch().seqstarts};
        return launch(KVJIT_PROGRAM_MERGE, merge_blocks(tensors), 1, args);
    }

    Device& device_;
    LengthBounds bounds_;
    std::vector<float> slopes_;
    kvjit_check_level check_level_;                        // the check kernel's
    std::int64_t fixed_decode_keys_, fixed_prefill_keys_;  // 0: kernels divide a tile's keys among the splits
    void* stream_;
    Workspace workspace_;
    Splits decode_splits_{kSplitUnit, 1, kSplitUnit}, prefill_splits_{kSplitUnit, 1, kSplitUnit};
};

std::string CudaPlan::describe() const {
    std::string text = gen::print_spec(spec()) + "\n";
    const auto line = [&](std::string_view name, std::int64_t value) {
        text.append(name).append(": ").append(std::to_string(value)).append("\n");
    };
    line("sequences", batch().batch_size);
    line("multiprocessors", device_.multiprocessors());
    if (attends()) {
        line("decode blocks", decode_blocks() * decode_splits_.count);
        line("decode splits", decode_splits_.count);
        line("keys of a split, at most", decode_splits_.keys);
        line("prefill splits", prefill_splits_.count);
        line("keys of a prefill's split, at most", prefills() ? prefill_splits_.keys : 0);
        line("prefill rows of a block", prefills() ? shape(KVJIT_PROGRAM_PREFILL).rows : 0);
    }
    line("workspace bytes", static_cast<std::int64_t>(workspace_bytes()));
    return text;
}

}  // namespace

gen::Result<std::unique_ptr<Plan>> make_cuda_plan(Device& device, KernelPtr kernel, const kvjit_batch& batch,
                                                  const kvjit_plan_options& options) {
    if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
    if (auto checked = check_cuda_options(options, kSplitUnit); !checked) return std::unexpected(checked.error());
    const BatchUse use = batch_use(kernel->spec(), options, kCudaAlignment);
    const gen::Result<LengthBounds> bounds = check_device_batch(kernel->spec(), batch, options.host_batch, use);
    if (!bounds) return std::unexpected(bounds.error());
    const BatchView view = batch_view(kernel->spec(), batch, use.stores);
    auto plan = std::make_unique<CudaPlan>(device, std::move(kernel), view, *bounds,
                                           slopes_of(view, batch.alibi_slopes), options);
    if (auto prepared = plan->prepare(options); !prepared) return std::unexpected(prepared.error());
    return plan;
}

}  // namespace kvjit::rt
