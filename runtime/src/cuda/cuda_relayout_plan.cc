#include <algorithm>

#include "check/arithmetic.h"
#include "check/check_options.h"
#include "check/check_tensors.h"
#include "check/fault.h"
#include "cuda/cuda_plan.h"
#include "cuda/workspace.h"
#include "relayout/relayout_plan.h"

namespace kvjit::rt {
namespace {

/// The most tokens of a run: a block's warps take a few rows each.
constexpr std::int64_t kRunTokens = 32;
constexpr std::int64_t kMaxBlocks = 0x7fffffff;

class CudaRelayoutPlan final : public RelayoutPlan {
public:
    CudaRelayoutPlan(Device& device, KernelPtr kernel, const RelayoutView& view, const kvjit_plan_options& options)
        : RelayoutPlan(std::move(kernel), view, kRunTokens),
          device_(device),
          stream_(options.stream),
          workspace_(device) {}

    gen::Result<void> prepare(const kvjit_plan_options& options) {
        if (auto ready = RelayoutPlan::prepare(); !ready) return ready;
        if (runs().runs.empty()) return {};
        if (blocks() > kMaxBlocks)
            return gen::fail(KVJIT_BAD_ARGUMENT, "num_layers",
                             text("num_layers is ", view().num_layers, ", which leads to ", blocks(),
                                  " blocks; a CUDA grid has room for ", kMaxBlocks),
                             view().num_layers, kMaxBlocks);
        const auto shared_bytes = static_cast<unsigned>(image()->launch().shared_bytes);
        if (auto done = device_.prepare_kernel(image()->entry(), shared_bytes); !done) return done;
        list();
        const WorkspaceLayout layout{.lists_bytes = lists_.size() * sizeof(std::int64_t)};
        const auto taken = workspace_.take(layout, options.workspace, options.workspace_bytes, options.stream);
        return taken ? workspace_.write_lists(lists_.data()) : taken;
    }

    gen::Result<void> synchronize() override { return device_.synchronize(stream_); }
    std::size_t workspace_bytes() const override { return workspace_.layout().bytes(); }
    std::string describe() const override {
        return outline() + text("blocks: ", blocks(), "\nworkspace bytes: ", workspace_bytes(), "\n");
    }

private:
    std::int64_t blocks() const {
        return saturating_product(std::ssize(runs().runs), view().num_layers, std::int64_t{2});
    }

    /// Concatenates the plan's lists, as the device has them.
    void list() {
        for (const abi::TokenRun& run : runs().runs)
            lists_.insert(lists_.end(), {run.from_token, run.to_token, run.count});
        for (const RunEntries* entries : {&runs().from, &runs().to}) {
            for (const auto* list : {&entries->codes, &entries->scales}) {
                begins_.push_back({list, std::ssize(lists_)});
                lists_.insert(lists_.end(), list->begin(), list->end());
            }
        }
    }

    gen::Result<void> check_run(const kvjit_tensors& from, const kvjit_tensors& to) override {
        if (auto aligned = check_row_alignment(view().from.batch, from); !aligned)
            return std::unexpected(error_of_side(kFromSide, aligned.error()));
        if (auto aligned = check_row_alignment(view().to.batch, to); !aligned)
            return std::unexpected(error_of_side(kToSide, aligned.error()));
        return {};
    }

    const std::int64_t* place_of(const std::vector<std::int64_t>& entries) const override {
        const auto of = [&](const Begin& begin) { return begin.list == &entries; };
        return workspace_.lists() + std::ranges::find_if(begins_, of)->at;
    }
    const abi::TokenRun* place_of_runs() const override {
        return reinterpret_cast<const abi::TokenRun*>(workspace_.lists());
    }

    gen::Result<void> launch(const abi::RelayoutArgs& relayout) override {
        const abi::CudaRelayoutArgs args{relayout, std::ssize(runs().runs)};
        const LaunchShape& shape = image()->launch();
        const Grid grid{static_cast<unsigned>(blocks()), 1, static_cast<unsigned>(shape.threads),
                        static_cast<unsigned>(shape.shared_bytes)};
        return device_.launch(image()->entry(), grid, &args, sizeof args, stream_);
    }

    /// Where a list begins in the concatenation.
    struct Begin {
        const std::vector<std::int64_t>* list;
        std::int64_t at;
    };

    Device& device_;
    void* stream_;
    Workspace workspace_;
    std::vector<std::int64_t> lists_;
    std::vector<Begin> begins_;
};

}  // namespace

gen::Result<std::unique_ptr<Plan>> make_cuda_plan(Device& device, KernelPtr kernel, const RelayoutRequest& request,
                                                  const kvjit_plan_options& options) {
    if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
    if (auto checked = check_cuda_options(options, kSplitUnit); !checked) return std::unexpected(checked.error());
    const auto level = static_cast<kvjit_check_level>(options.check_level);
    const auto view = check_relayout(kernel->spec(), request, level, kCudaAlignment);
    if (!view) return std::unexpected(view.error());
    auto plan = std::make_unique<CudaRelayoutPlan>(device, std::move(kernel), *view, options);
    if (auto prepared = plan->prepare(options); !prepared) return std::unexpected(prepared.error());
    return plan;
}

}  // namespace kvjit::rt
