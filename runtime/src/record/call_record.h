// One plan's runs, as recordings: docs/recording.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel.h"
#include "plan.h"
#include "record/recorder.h"

namespace kvjit::rt {

/// What a recording needs of a plan besides the plan itself. Where nothing is recorded a run costs one look at
/// recording().
class CallRecord {
public:
    CallRecord() = default;
    /// `batch`, `options`: what the plan was made of. `recorder` may be null.
    CallRecord(std::shared_ptr<Recorder> recorder, const Kernel& kernel, const kvjit_batch& batch,
               const kvjit_plan_options& options);

    /// Null: runs are not recorded.
    Recording* recording() const { return current_->load(std::memory_order_acquire); }
    /// As plan.run, whose result it returns whatever becomes of the recording.
    gen::Result<void> run(Recording& recording, Plan& plan, const kvjit_tensors& tensors, std::int64_t layer_idx) const;

private:
    static inline const std::atomic<Recording*> kNever{nullptr};

    std::shared_ptr<Recorder> recorder_;
    const std::atomic<Recording*>* current_ = &kNever;  // the recorder's
    gen::KernelSpec spec_;
    gen::Target target_;  // its text is made for recordings alone
    kvjit_batch batch_;
    std::vector<float> slopes_;  // the caller's needn't outlive the plan's making
    bool stores_nothing_ = false;
    std::int64_t split_keys_ = 0, prefill_split_keys_ = 0;
};

}  // namespace kvjit::rt
