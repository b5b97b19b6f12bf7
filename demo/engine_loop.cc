#include "engine_loop.h"

#include <algorithm>
#include <random>
#include <string>

#include "breakdown.h"
#include "load.h"
#include "page_allocator.h"
#include "scheduler.h"
#include "step_runner.h"
#include "terminal.h"

namespace demo {
namespace {

constexpr int kBreakdowns = 8;  // of the steps, evenly spread

class Loop {
public:
    Loop(const Options& options, const Kernels& kernels, std::int64_t layers, Machine& machine)
        : load_(load_of(options.place)),
          steps_(options.steps),
          between_breakdowns_(options.place == Place::kEmulated ? 0 : std::max(1, options.steps / kBreakdowns)),
          cache_(machine.memory(), layers, load_.pages * Shape::kPageSize),
          activations_(machine.memory(), load_.pool_rows, options.seed),
          caller_(options, machine.memory(), cache_),
          runner_(kernels, caller_, activations_, load_.step_tokens()),
          breakdown_(options, kernels, caller_, machine, load_.step_tokens()),
          pages_(load_.pages, Shape::kPageSize),
          scheduler_(pages_, Shape::kPageSize, load_.prefill_budget),
          random_(options.seed) {}

    /// Sequences in mid-decode.
    void restore_sequences() {
        Progress progress("restoring", load_.restored);
        for (int i = 0; i < load_.restored; ++i) {
            Sequence sequence{within(load_.restored_prompt), within(load_.restored_output)};
            scheduler_.reserve(sequence, sequence.prompt);
            Step step;
            step.work.push_back({&sequence, sequence.prompt});
            runner_.store_past(RaggedBatch(step));
            sequence.stored = sequence.prompt;
            scheduler_.submit(std::move(sequence));
            progress.show(i + 1);
        }
        result_.sequences += load_.restored;
    }

    void submit_requests() {
        for (int i = 0; i < load_.requests; ++i) {
            const int arrival = i * steps_ / load_.requests / 2;
            scheduler_.submit({within(load_.request_prompt), within(load_.request_output), arrival});
        }
        result_.sequences += load_.requests;
    }

    void run_steps(Checker& checker) {
        Progress progress("steps", steps_);
        for (int number = 0; number < steps_; ++number) {
            const Step step = scheduler_.begin_step(number);
            if (!step.work.empty()) run_step(number, step, checker);
            scheduler_.end_step(step);
            progress.show(number + 1, std::to_string(step.decoding) + " decoding, " +
                                          std::to_string(step.prefill_tokens) + " prompt tokens");
        }
        result_.finished = scheduler_.finished();
        result_.peer = breakdown_.peer();
    }

    const LoopResult& result() const { return result_; }

private:
    void run_step(int number, const Step& step, Checker& checker) {
        Tally& tally = step.prefill_tokens == 0 ? result_.decode_only : result_.mixed;
        const RaggedBatch batch(step);
        const std::int64_t checked = number % cache_.layers();
        const std::vector<LayerCall> calls = runner_.run(batch, checked, tally);
        checker.check(cache_, batch, calls[checked]);
        if (between_breakdowns_ == 0 || number % between_breakdowns_ != 0) return;
        breakdown_.measure(step, calls, calls[checked], tally, checker);
    }

    std::int64_t within(const Range& range) {
        return std::uniform_int_distribution<std::int64_t>(range.low, range.high)(random_);
    }

    const Load& load_;
    int steps_;
    int between_breakdowns_;  // steps; 0: there are none
    CacheMemory cache_;
    Activations activations_;
    Caller caller_;
    StepRunner runner_;
    Breakdown breakdown_;
    PageAllocator pages_;
    Scheduler scheduler_;
    std::mt19937_64 random_;
    LoopResult result_;
};

}  // namespace

LoopResult run_loop(const Options& options, const Kernels& kernels, std::int64_t layers, Machine& machine,
                    Checker& checker) {
    Loop loop(options, kernels, layers, machine);
    loop.restore_sequences();
    loop.submit_requests();
    loop.run_steps(checker);
    return loop.result();
}

std::int64_t cache_bytes(const Options& options, std::int64_t layers) {
    return layers * load_of(options.place).pages * Shape::kPageSize * Shape::kTokenBytes;
}

std::int64_t layers_that_fit(const Options& options, const Memory& memory) {
    const auto room = static_cast<std::int64_t>(memory.free_bytes() / 2);
    return std::clamp<std::int64_t>(room / cache_bytes(options, 1), 1, options.layers);
}

}  // namespace demo
