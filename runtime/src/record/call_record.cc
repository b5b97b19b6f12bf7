#include "record/call_record.h"

#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "batch/batch_view.h"
#include "check/check_batch.h"
#include "record/call_case.h"

namespace kvjit::rt {

CallRecord::CallRecord(std::shared_ptr<Recorder> recorder, const Kernel& kernel, const kvjit_batch& batch,
                       const kvjit_plan_options& options)
    : recorder_(std::move(recorder)),
      spec_(kernel.spec()),
      target_(kernel.target()),
      batch_(batch),
      stores_nothing_(options.stores_nothing != 0),
      split_keys_(options.split_keys),
      prefill_split_keys_(options.prefill_split_keys) {
    if (recorder_) current_ = &recorder_->current();
    if (batch.alibi_slopes == nullptr || spec_.is_alibi == 0) return;
    slopes_.assign(batch.alibi_slopes, batch.alibi_slopes + query_heads(spec_, batch));
}

namespace {

/// A call that is being recorded.
class Draft {
public:
    Draft(Recording& recording, Plan& plan) : recording_(recording), plan_(plan) {}

    /// False: the call can't be recorded, which is said.
    bool begin(const gen::KernelSpec& spec, const kvjit_batch& batch, const std::vector<float>& slopes,
               const CasePlan& plan, const kvjit_tensors& tensors, std::int64_t layer_idx) {
        gen::Result<HostBatch> host = HostBatch::copy(plan_, spec, batch, slopes, layer_idx);
        if (!host) return give_up(host.error().message);
        host_.emplace(*std::move(host));
        const BatchUse use{KVJIT_CHECK_FULL, !plan.stores_nothing && gen::has_cache(spec)};
        if (auto checked = check_batch(spec, host_->batch(), use); !checked) return give_up(checked.error().message);
        auto made = CallCase::make(*host_, plan, tensors, layer_idx);
        if (!made) return give_up(made.error());
        case_.emplace(*std::move(made));
        auto room = recording_.reserve(case_->bytes());
        if (!room) return false;
        room_.emplace(*std::move(room));
        const auto read = case_->read_inputs(plan_, bytes_);
        return read ? true : give_up(read.error().message);
    }

    void end(const gen::KernelSpec& spec) {
        if (auto read = case_->read_results(plan_, bytes_); !read) {
            give_up(read.error().message);
            return;
        }
        std::move(*room_).write(spec, bytes_);
    }

    bool give_up(std::string_view why) noexcept {
        recording_.skip(Recording::Obstacle::kCall, why);
        return false;
    }

private:
    Recording& recording_;
    Plan& plan_;
    std::optional<HostBatch> host_;
    std::optional<CallCase> case_;
    std::optional<Recording::Room> room_;
    std::string bytes_;
};

/// Recording must not fail a call: what it throws is said.
template <class Body>
bool survives(Draft& draft, Body body) noexcept {
    try {
        return body();
    } catch (const std::exception& thrown) {
        return draft.give_up(thrown.what());
    } catch (...) {
        return draft.give_up("the engine's log threw");
    }
}

}  // namespace

gen::Result<void> CallRecord::run(Recording& recording, Plan& plan, const kvjit_tensors& tensors,
                                  std::int64_t layer_idx) const {
    if (auto checked = plan.check(tensors, layer_idx); !checked) return checked;
    if (!recording.takes(spec_, plan.programs(), gen::has_cache(spec_) ? layer_idx : 0)) {
        return plan.run(tensors, layer_idx);
    }
    if (plan.is_captured()) {
        recording.skip(Recording::Obstacle::kCapture, "its stream is being captured; a recording would wait for it");
        return plan.run(tensors, layer_idx);
    }
    Draft draft(recording, plan);
    const bool begun = survives(draft, [&] {
        const CasePlan how{target_.full_text(), stores_nothing_, split_keys_, prefill_split_keys_};
        return draft.begin(spec_, batch_, slopes_, how, tensors, layer_idx);
    });
    auto ran = plan.run(tensors, layer_idx);
    if (begun && ran) survives(draft, [&] { return draft.end(spec_), true; });
    return ran;
}

}  // namespace kvjit::rt
