// A plan of op Relayout: the lists of what to copy where, and the arguments of a run. Backends only launch it.
#pragma once

#include "kernel.h"
#include "plan.h"
#include "relayout/apart.h"
#include "relayout/runs.h"
#include "relayout/sides.h"

namespace kvjit::rt {

/// Checks that the kernel and the options suit such a plan. Errors: KVJIT_BAD_ARGUMENT.
gen::Result<void> check_relayout_kernel(const Kernel& kernel, const kvjit_plan_options& options);

/// Checks that the kernel suits any other plan. Errors: KVJIT_BAD_ARGUMENT.
gen::Result<void> check_no_relayout(const Kernel& kernel);

class RelayoutPlan : public Plan {
public:
    gen::Result<void> run(const kvjit_tensors& tensors, std::int64_t layer_idx) final;
    /// Always refuses: relayout runs such a plan.
    gen::Result<void> check(const kvjit_tensors& tensors, std::int64_t layer_idx) final {
        return run(tensors, layer_idx);
    }
    std::uint32_t programs() const final { return KVJIT_PROGRAM_RELAYOUT; }
    RunWork work(const kvjit_batch* host) const final;
    gen::Result<void> relayout(const kvjit_tensors& from, std::int64_t from_layer, const kvjit_tensors& to,
                               std::int64_t to_layer) final;

protected:
    /// `most`: the limit of a run's tokens. Precondition: the view is checked.
    RelayoutPlan(KernelPtr kernel, const RelayoutView& view, std::int64_t most)
        : kernel_(std::move(kernel)), view_(view), apart_(view_), runs_(relayout_runs(view_, most)) {}

    /// Has the program ready if there is anything to copy. Errors: those of Apart::check_tables and Kernel::prepare.
    gen::Result<void> prepare();

    const RelayoutView& view() const { return view_; }
    const RelayoutRuns& runs() const { return runs_; }
    const ImagePtr& image() const { return images_[KVJIT_PROGRAM_RELAYOUT]; }
    /// Bytes of the codes that a run writes.
    std::int64_t bytes() const;
    /// The part of describe that all such plans share.
    std::string outline() const;

private:
    /// Checks what the launch needs besides correct tensors.
    virtual gen::Result<void> check_run(const kvjit_tensors&, const kvjit_tensors&) { return {}; }
    /// The address at which kernels find one of the plan's lists.
    virtual const std::int64_t* place_of(const std::vector<std::int64_t>& entries) const = 0;
    virtual const abi::TokenRun* place_of_runs() const = 0;
    virtual gen::Result<void> launch(const abi::RelayoutArgs& args) = 0;

    gen::Result<void> check_tensors_of(const kvjit_tensors& from, std::int64_t from_layer, const kvjit_tensors& to,
                                       std::int64_t to_layer) const;
    abi::RelayoutSide bind(const RelayoutSideView& side, const RunEntries& entries, const kvjit_tensors& tensors,
                           std::int64_t layer) const;

    /// Bytes of the codes and scales of a run on one side.
    std::int64_t moved_bytes(const RelayoutSideView& side) const;

    KernelPtr kernel_;
    RelayoutView view_;
    Apart apart_;
    RelayoutRuns runs_;
    ImageSet images_;
};

}  // namespace kvjit::rt
