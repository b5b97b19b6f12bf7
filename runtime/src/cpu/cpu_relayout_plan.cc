#include <algorithm>
#include <optional>

#include "check/arithmetic.h"
#include "check/check_options.h"
#include "cpu/cpu_plan.h"
#include "cpu/executor.h"
#include "cpu/stage.h"
#include "relayout/relayout_plan.h"

namespace kvjit::rt {
namespace {

/// The most tokens of a run, so that a few long sequences still give work to all threads.
constexpr std::int64_t kRunTokens = 256;
/// The calling thread runs a relayout that writes less than this alone: waking others would take longer.
constexpr std::int64_t kSerialBytes = 64 * 1024;
/// A relayout that writes more uses stores that bypass the caches.
constexpr std::int64_t kStreamBytes = std::int64_t{4} << 20;

/// Runs in groups of about equal tokens; where these are fewer than `wanted`, the layers are divided, too.
std::vector<abi::RelayoutItem> items_of(const RelayoutRuns& all, std::int64_t layers, std::int64_t wanted) {
    const std::int64_t target = ceil_div(all.tokens, wanted), runs = std::ssize(all.runs);
    std::vector<abi::RelayoutItem> groups;
    std::int64_t begin = 0, tokens = 0;
    for (std::int64_t run = 0; run < runs; ++run) {
        tokens += all.runs[static_cast<std::size_t>(run)].count;
        if (tokens < target && run + 1 < runs) continue;
        groups.push_back({begin, run + 1, 0, layers});
        begin = run + 1;
        tokens = 0;
    }
    const std::int64_t step =
        ceil_div(layers, std::min(layers, ceil_div(wanted, std::max<std::int64_t>(1, std::ssize(groups)))));
    std::vector<abi::RelayoutItem> items;
    for (const abi::RelayoutItem& group : groups) {
        for (std::int64_t layer = 0; layer < layers; layer += step)
            items.push_back({group.run_begin, group.run_end, layer, std::min(layers, layer + step)});
    }
    return items;
}

class CpuRelayoutPlan final : public RelayoutPlan {
public:
    /// `user`: empty where the executor is the caller's own.
    CpuRelayoutPlan(KernelPtr kernel, const RelayoutView& view, const kvjit_executor& executor,
                    std::optional<PoolUser> user)
        : RelayoutPlan(std::move(kernel), view, kRunTokens),
          executor_(executor),
          user_(user),
          items_(items_of(runs(), view.num_layers, std::max(1, executor.concurrency) * kItemsPerThread)) {}

    using RelayoutPlan::prepare;

    gen::Result<void> synchronize() override { return {}; }
    std::size_t workspace_bytes() const override { return 0; }
    std::string describe() const override {
        return outline() + "threads: " + std::to_string(executor_.concurrency) +
               "\nitems: " + std::to_string(items_.size()) + "\n";
    }

private:
    gen::Result<void> check_run(const kvjit_tensors&, const kvjit_tensors&) override {
        return user_ ? user_->check() : gen::Result<void>();
    }
    const std::int64_t* place_of(const std::vector<std::int64_t>& entries) const override { return entries.data(); }
    const abi::TokenRun* place_of_runs() const override { return runs().runs.data(); }

    gen::Result<void> launch(const abi::RelayoutArgs& bound) override {
        abi::RelayoutArgs args = bound;
        args.streams = bytes() >= kStreamBytes;
        Stage<abi::RelayoutArgs, abi::RelayoutItem> stage(args, image()->entry(), items_);
        if (bytes() <= kSerialBytes) {
            stage.run_serially();
        } else {
            stage.run(executor_);
        }
        return {};
    }

    kvjit_executor executor_;
    std::optional<PoolUser> user_;
    std::vector<abi::RelayoutItem> items_;
};

}  // namespace

gen::Result<std::unique_ptr<Plan>> make_cpu_plan(KernelPtr kernel, const RelayoutRequest& request,
                                                 const kvjit_plan_options& options) {
    if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
    if (auto checked = check_no_cuda_options(options); !checked) return std::unexpected(checked.error());
    const auto view = check_relayout(kernel->spec(), request, static_cast<kvjit_check_level>(options.check_level), 1);
    if (!view) return std::unexpected(view.error());
    const gen::Result<kvjit_executor> executor = executor_of(options);
    if (!executor) return std::unexpected(executor.error());
    const auto user = options.executor == nullptr ? std::optional<PoolUser>(*executor) : std::nullopt;
    auto plan = std::make_unique<CpuRelayoutPlan>(std::move(kernel), *view, *executor, user);
    if (auto prepared = plan->prepare(); !prepared) return std::unexpected(prepared.error());
    return plan;
}

}  // namespace kvjit::rt
