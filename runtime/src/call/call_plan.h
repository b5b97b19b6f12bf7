// The sequence of a call: which programs run when, with which arguments. Backends only launch them.
#pragma once

#include "batch/batch_view.h"
#include "check/check_tensors.h"
#include "common/abi.h"
#include "kernel.h"
#include "plan.h"

namespace kvjit::rt {

/// A plan whose runs check the tensors, bind each program's arguments and pass them to the backend.
class CallPlan : public Plan {
public:
    gen::Result<void> run(const kvjit_tensors& tensors, std::int64_t layer_idx) final;
    gen::Result<void> check(const kvjit_tensors& tensors, std::int64_t layer_idx) final;
    std::uint32_t programs() const final { return programs_; }
    RunWork work(const kvjit_batch* host) const final {
        return host == nullptr ? RunWork() : run_work(batch_view(spec(), *host, batch_.stores));
    }
    gen::Result<void> relayout(const kvjit_tensors& from, std::int64_t from_layer, const kvjit_tensors& to,
                               std::int64_t to_layer) final;

protected:
    /// `rows`: see check_tensors.
    CallPlan(KernelPtr kernel, const BatchView& batch, const BatchRows& rows);

    /// The programs that a run of the operator on this batch may need, as bits of kvjit_programs.
    std::uint32_t possible_programs() const;
    /// Has the images of `programs`, a subset of possible_programs, ready: the ones that runs will launch.
    gen::Result<void> prepare(std::uint32_t programs);

    const Kernel& kernel() const { return *kernel_; }
    const BatchView& batch() const { return batch_; }
    const gen::KernelSpec& spec() const { return batch_.spec; }
    bool needs(std::uint32_t programs) const { return (programs_ & programs) != 0; }
    /// Null: the plan doesn't need the program.
    const ImagePtr& image(kvjit_programs program) const { return images_[program]; }
    /// The images of the programs that the plan needs.
    const ImageSet& images() const { return images_; }

private:
    /// Checks a run's needs beyond correct tensors. Nothing has been written yet.
    virtual gen::Result<void> check_run(const kvjit_tensors& tensors) = 0;
    // The launches, in the order of a call. `rows`: of the packed tensors that a program moves.
    virtual gen::Result<void> check_arrays(const kvjit_tensors&) { return {}; }
    virtual gen::Result<void> store(const abi::StoreArgs& args, std::int64_t rows) = 0;
    virtual gen::Result<void> load(const abi::LoadArgs& args, std::int64_t rows) = 0;
    /// Decode and prefill; adds partials and slopes to the arguments.
    virtual gen::Result<void> attend(abi::AttendArgs args, const kvjit_tensors& tensors) = 0;
    /// Op Merge; adds the places of the partials to its items.
    virtual gen::Result<void> merge(const abi::MergeArgs& args, const kvjit_tensors& tensors) = 0;

    gen::Result<void> launch(const kvjit_tensors& tensors, std::int64_t layer_idx);

    KernelPtr kernel_;
    BatchView batch_;
    BatchRows rows_;
    std::uint32_t programs_ = 0;
    ImageSet images_;
};

}  // namespace kvjit::rt
