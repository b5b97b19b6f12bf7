#include "cpu/cpu_plan.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>

#include "call/bind.h"
#include "call/call_plan.h"
#include "check/arithmetic.h"
#include "check/check_batch.h"
#include "check/check_options.h"
#include "cpu/executor.h"
#include "cpu/split.h"
#include "cpu/stage.h"

namespace kvjit::rt {
namespace {

constexpr std::size_t kWorkspaceAlignment = 64;
/// The calling thread runs a stage that moves less than this alone: waking others would take longer.
constexpr std::int64_t kSerialElements = 32 * 1024;

struct FreeAligned {
    void operator()(void* memory) const { ::operator delete(memory, std::align_val_t{kWorkspaceAlignment}); }
};

class CpuPlan final : public CallPlan {
public:
    /// `user`: empty where the executor is the caller's own. `slopes`: slopes_of.
    CpuPlan(KernelPtr kernel, const BatchView& view, const BatchRows& rows, std::vector<float> slopes,
            const kvjit_executor& executor, std::optional<PoolUser> user)
        : CallPlan(std::move(kernel), view, rows),
          slopes_(std::move(slopes)),
          executor_(executor),
          user_(user),
          work_(split(view, {CallPlan::kernel().decode_tokens(tokens_in(view)), std::max(1, executor.concurrency)})) {}

    gen::Result<void> prepare() {
        const std::uint32_t with_items =
            (work_.store.empty() ? 0 : KVJIT_PROGRAM_STORE) | (work_.load.empty() ? 0 : KVJIT_PROGRAM_LOAD) |
            (work_.decode.empty() ? 0 : KVJIT_PROGRAM_DECODE) | (work_.prefill.empty() ? 0 : KVJIT_PROGRAM_PREFILL) |
            (work_.merge.empty() ? 0 : KVJIT_PROGRAM_MERGE);
        return CallPlan::prepare(possible_programs() & with_items);
    }

    gen::Result<void> take_workspace(const kvjit_plan_options& options) {
        if (options.workspace == nullptr) return allocate();
        if (auto fits = check_workspace(options.workspace_bytes, workspace_bytes()); !fits) return fits;
        partials_ = static_cast<float*>(options.workspace);
        return {};
    }

    gen::Result<void> synchronize() override { return {}; }

    std::size_t workspace_bytes() const override {
        return static_cast<std::size_t>(work_.partial_floats) * sizeof(float);
    }

    std::string describe() const override;

private:
    gen::Result<void> allocate() {
        if (workspace_bytes() == 0) return {};
        owned_.reset(::operator new(workspace_bytes(), std::align_val_t{kWorkspaceAlignment}, std::nothrow));
        if (!owned_) {
            return gen::fail(KVJIT_OUT_OF_MEMORY, "workspace_bytes",
                             "no memory for a workspace of " + std::to_string(workspace_bytes()) + " bytes",
                             static_cast<std::int64_t>(workspace_bytes()));
        }
        partials_ = static_cast<float*>(owned_.get());
        return {};
    }

    /// Null: the plan has no items for it.
    void* entry(kvjit_programs program) const { return image(program) ? image(program)->entry() : nullptr; }

    gen::Result<void> check_run(const kvjit_tensors&) override { return user_ ? user_->check() : gen::Result<void>(); }

    gen::Result<void> store(const abi::StoreArgs& args, std::int64_t rows) override {
        Stage<abi::StoreArgs, abi::TokenItem> stage(args, entry(KVJIT_PROGRAM_STORE), work_.store);
        const std::int64_t row_elements = std::int64_t{spec().head_dim};
        if (saturating_product(rows, batch().num_kv_heads, row_elements) <= kSerialElements) {
            stage.run_serially();
        } else {
            stage.run(executor_);
        }
        return {};
    }

    gen::Result<void> load(const abi::LoadArgs& args, std::int64_t) override {
        Stage<abi::LoadArgs, abi::TokenItem>(args, entry(KVJIT_PROGRAM_LOAD), work_.load).run(executor_);
        return {};
    }

    gen::Result<void> attend(abi::AttendArgs args, const kvjit_tensors& tensors) override {
        args.partials = partials_;
        args.slopes = slopes_.data();
        Stage<abi::AttendArgs, abi::AttendItem>(args, entry(KVJIT_PROGRAM_PREFILL), work_.prefill,
                                                entry(KVJIT_PROGRAM_DECODE), work_.decode)
            .run(executor_);
        if (!work_.merge.empty()) run_merge(bind_split_merge(tensors, partials_));
        return {};
    }

    gen::Result<void> merge(const abi::MergeArgs& args, const kvjit_tensors& tensors) override {
        place_parts(tensors, work_.merge);
        run_merge(args);
        return {};
    }

    void run_merge(const abi::MergeArgs& args) {
        Stage<abi::MergeArgs, abi::MergeItem>(args, entry(KVJIT_PROGRAM_MERGE), work_.merge).run(executor_);
    }

    std::vector<float> slopes_;
    kvjit_executor executor_;
    std::optional<PoolUser> user_;
    Work work_;
    std::unique_ptr<void, FreeAligned> owned_;
    float* partials_ = nullptr;
};

std::string CpuPlan::describe() const {
    std::string text = gen::print_spec(spec()) + "\n";
    const auto line = [&](std::string_view name, std::int64_t value) {
        text.append(name).append(": ").append(std::to_string(value)).append("\n");
    };
    line("sequences", batch().batch_size);
    line("threads", executor_.concurrency);
    line("store items", std::ssize(work_.store));
    line("load items", std::ssize(work_.load));
    line("decode items", std::ssize(work_.decode));
    line("prefill items", std::ssize(work_.prefill));
    line("merge items", std::ssize(work_.merge));
    line("workspace bytes", static_cast<std::int64_t>(workspace_bytes()));
    return text;
}

}  // namespace

gen::Result<std::unique_ptr<Plan>> make_cpu_plan(KernelPtr kernel, const kvjit_batch& batch,
                                                 const kvjit_plan_options& options) {
    if (auto checked = check_options(options); !checked) return std::unexpected(checked.error());
    if (auto checked = check_no_cuda_options(options); !checked) return std::unexpected(checked.error());
    const BatchUse use = batch_use(kernel->spec(), options, 1);
    if (auto checked = check_batch(kernel->spec(), batch, use); !checked) return std::unexpected(checked.error());
    const gen::Result<kvjit_executor> executor = executor_of(options);
    if (!executor) return std::unexpected(executor.error());
    const BatchView view = batch_view(kernel->spec(), batch, use.stores);
    const BatchRows rows = rows_of(kernel->spec(), batch);
    const auto user = options.executor == nullptr ? std::optional<PoolUser>(*executor) : std::nullopt;
    auto plan =
        std::make_unique<CpuPlan>(std::move(kernel), view, rows, slopes_of(view, batch.alibi_slopes), *executor, user);
    if (auto taken = plan->take_workspace(options); !taken) return std::unexpected(taken.error());
    if (auto prepared = plan->prepare(); !prepared) return std::unexpected(prepared.error());
    return plan;
}

}  // namespace kvjit::rt
