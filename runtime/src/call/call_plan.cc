#include "call/call_plan.h"

#include "call/bind.h"
#include "check/fault.h"

namespace kvjit::rt {
namespace {

/// Rows of the output that the call wants; 0: it wants neither.
std::int64_t loaded_rows(const kvjit_tensors& tensors) {
    return tensors.key.rank != 0 ? tensors.key.shape[0] : tensors.value.shape[0];
}

}  // namespace

CallPlan::CallPlan(KernelPtr kernel, const BatchView& batch, const BatchRows& rows)
    : kernel_(std::move(kernel)), batch_(batch), rows_(rows) {}

std::uint32_t CallPlan::possible_programs() const {
    if (batch_.batch_size == 0) return 0;
    std::uint32_t programs = kernel_->bits();
    if (!batch_.stores) programs &= ~std::uint32_t{KVJIT_PROGRAM_STORE};
    // Without kvstarts, a sequence's rows in the loaded tensors have no known begin.
    if (!is_given(batch_.keys.starts)) programs &= ~std::uint32_t{KVJIT_PROGRAM_LOAD};
    return programs;
}

gen::Result<void> CallPlan::prepare(std::uint32_t programs) {
    gen::Result<ImageSet> ready = kernel_->prepare(programs);
    if (!ready) return std::unexpected(ready.error());
    images_ = *std::move(ready);
    programs_ = programs;
    return {};
}

gen::Result<void> CallPlan::check(const kvjit_tensors& tensors, std::int64_t layer_idx) {
    if (auto checked = check_tensors(batch_, rows_, tensors, layer_idx); !checked) return checked;
    return check_run(tensors);
}

gen::Result<void> CallPlan::run(const kvjit_tensors& tensors, std::int64_t layer_idx) {
    if (auto checked = check(tensors, layer_idx); !checked) return checked;
    return launch(tensors, layer_idx);
}

gen::Result<void> CallPlan::relayout(const kvjit_tensors&, std::int64_t, const kvjit_tensors&, std::int64_t) {
    return gen::fail(
        KVJIT_BAD_ARGUMENT, "plan",
        text("plan is of op ", op_name(spec()), "; kvjit_run runs it, kvjit_relayout_run one of Relayout"));
}

/// All stores of a call happen before any read of the cache (docs/semantics.md, section 2).
gen::Result<void> CallPlan::launch(const kvjit_tensors& tensors, std::int64_t layer_idx) {
    if (needs(KVJIT_PROGRAM_CHECK)) {
        if (auto checked = check_arrays(tensors); !checked) return checked;
    }
    if (needs(KVJIT_PROGRAM_STORE) && tensors.current_key.rank != 0) {
        const abi::StoreArgs args = bind_store(batch_, tensors, layer_idx);
        if (auto stored = store(args, tensors.current_key.shape[0]); !stored) return stored;
    }
    if (needs(KVJIT_PROGRAM_LOAD) && loaded_rows(tensors) != 0) {
        return load(bind_load(batch_, tensors, layer_idx), loaded_rows(tensors));
    }
    if (needs(KVJIT_PROGRAM_DECODE | KVJIT_PROGRAM_PREFILL)) {
        return attend(bind_attend(batch_, tensors, layer_idx), tensors);
    }
    if (needs(KVJIT_PROGRAM_MERGE)) return merge(bind_merge(tensors), tensors);
    return {};
}

}  // namespace kvjit::rt
