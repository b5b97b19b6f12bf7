#include "breakdown.h"

#include <thread>
#include <utility>

#include "limits/together.h"
#include "plain.h"

namespace demo {
namespace {

/// Attention alone of some of a step's sequences. Without any, there are no new tokens.
struct Part {
    RaggedBatch batch;
    std::vector<LayerCall> calls;
};

/// The step's decoding sequences, or the others, with all outputs to one place.
Part part_of(const Step& step, std::vector<LayerCall> calls, bool decoding, Half* output) {
    const auto border = step.work.begin() + static_cast<std::ptrdiff_t>(step.decoding);
    Step part;
    part.work.assign(decoding ? step.work.begin() : border, decoding ? border : step.work.end());
    part.decoding = decoding ? step.decoding : 0;
    for (LayerCall& call : calls) {
        if (!decoding) call.query += step.decoding * Shape::kHeads * Shape::kHeadDim;  // a row each before
        call.key = call.value = nullptr;
        call.output = output;
    }
    return {RaggedBatch(part), std::move(calls)};
}

/// Of new keys and values in float16, read, and of what they become in the cache, written.
double stored_bytes(const RaggedBatch& batch) {
    constexpr std::int64_t kGiven = 2 * Shape::kKvHeads * Shape::kHeadDim * static_cast<std::int64_t>(sizeof(Half));
    return static_cast<double>(batch.new_tokens() * (kGiven + Shape::kTokenBytes));
}

/// Of keys, values and scales, each sequence's once.
double attended_bytes(const RaggedBatch& batch) {
    return static_cast<double>(batch.kvstarts.back() * Shape::kTokenBytes);
}

/// Multiplications and additions.
double attended_operations(const RaggedBatch& batch) {
    std::int64_t pairs = 0;  // of a row and a key that it sees
    for (std::int64_t b = 0; b < batch.sequences(); ++b) {
        const std::int64_t rows = batch.seqstarts[b + 1] - batch.seqstarts[b];
        for (std::int64_t row = 0; row < rows; ++row) pairs += batch.visible_keys(b, row);
    }
    return 4.0 * Shape::kHeadDim * Shape::kHeads * static_cast<double>(pairs);
}

/// Every second task on a thread of its own: kvjit's pool has no second thread where the process has one core.
void run_on_two_threads(std::int64_t count, kvjit::Task task) {
    const auto run_from = [&](std::int64_t first) {
        for (std::int64_t i = first; i < count; i += 2) task(i);
    };
    std::thread second(run_from, 1);
    run_from(0);
    second.join();
}

}  // namespace

Breakdown::Breakdown(const Options& options, const Kernels& kernels, const Caller& caller, Machine& machine,
                     std::int64_t new_tokens)
    : kernels_(kernels),
      caller_(caller),
      machine_(machine),
      threads_(options.threads),
      beside_others_(options.place == Place::kCpu),
      peer_(beside_others_ ? options.threads : 0),
      output_(take_array<Half>(caller.memory(), new_tokens * Shape::kHeads * Shape::kHeadDim)),
      other_output_(take_array<Half>(caller.memory(), new_tokens * Shape::kHeads * Shape::kHeadDim)) {}

void Breakdown::measure(const Step& step, const std::vector<LayerCall>& calls, const LayerCall& checked, Tally& tally,
                        Checker& checker) {
    const RaggedBatch batch(step);
    if (beside_others_) compare_bits(batch, checked, checker);
    const Yardstick limit = machine_.measure();
    caller_.memory().settle();
    const Part decoding = part_of(step, calls, true, output_.get());
    const Part prefilling = part_of(step, calls, false, output_.get());
    // As the layer before does, this wakes the pool's threads and sweeps the caches.
    const Part& first = step.decoding > 0 ? decoding : prefilling;
    time_attention(first.batch, first.calls);
    tally.store.push_back({time_store(batch, calls), stored_bytes(batch), limit.bytes_a_second});
    if (step.decoding > 0) {
        const double seconds = time_attention(decoding.batch, decoding.calls);
        tally.decode.push_back({seconds, attended_bytes(decoding.batch), limit.bytes_a_second});
    }
    if (step.prefill_tokens > 0) {
        const double seconds = time_attention(prefilling.batch, prefilling.calls);
        tally.prefill.push_back({seconds, attended_operations(prefilling.batch), limit.operations_a_second});
    }
    if (!beside_others_) return;
    kvjit::limits::wait_for_idle_pool();
    for (const auto& [part, timings] : {std::pair(&decoding, &tally.decode), std::pair(&prefilling, &tally.prefill)}) {
        if (part->batch.new_tokens() > 0) time_others(part->batch, part->calls.back(), timings->back(), checker);
    }
}

double Breakdown::time_store(const RaggedBatch& batch, std::vector<LayerCall> calls) {
    for (LayerCall& call : calls) call.query = nullptr;
    const PlacedBatch placed(caller_.memory(), batch, caller_.cache());
    kvjit::Plan plan = caller_.plan(kernels_.store, batch, placed);
    return caller_.run(plan, batch, calls) / static_cast<double>(calls.size());
}

double Breakdown::time_attention(const RaggedBatch& batch, const std::vector<LayerCall>& calls) {
    const PlacedBatch placed(caller_.memory(), batch, caller_.cache());
    kvjit::Plan plan = caller_.reading_plan(kernels_.attention, batch, placed, threads_);
    return caller_.run(plan, batch, calls) / static_cast<double>(calls.size());
}

void Breakdown::time_others(const RaggedBatch& batch, LayerCall call, Timing& timing, Checker& checker) {
    call.output = other_output_.get();
    timing.plain_seconds = attend_plainly(caller_.cache(), batch, call, threads_);
    checker.check_plain(caller_.cache(), batch, call);
    timing.peer_seconds = peer_.attend(batch);
}

void Breakdown::compare_bits(const RaggedBatch& batch, LayerCall checked, Checker& checker) {
    const PlacedBatch placed(caller_.memory(), batch, caller_.cache());
    const kvjit::Executor two(2, run_on_two_threads);
    const bool on_two = threads_ == 1;
    kvjit::Plan plan = caller_.reading_plan(kernels_.attention, batch, placed, 1, on_two ? &two : nullptr);
    const Half* const output = checked.output;
    checked.key = checked.value = nullptr;
    checked.output = other_output_.get();
    caller_.run(plan, batch, {checked});
    checker.check_bits(on_two ? 2 : threads_, output, checked.output,
                       batch.new_tokens() * Shape::kHeads * Shape::kHeadDim);
}

}  // namespace demo
