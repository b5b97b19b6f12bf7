#include "engine_loop.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "page_allocator.h"
#include "scheduler.h"
#include "step_runner.h"
#include "terminal.h"

namespace demo {
namespace {

constexpr std::int64_t kPages = 384;
constexpr std::int64_t kPrefillBudget = 512;  // prompt tokens a step
constexpr int kRestored = 16;                 // sequences that are there from the start
constexpr int kRequests = 10;                 // sequences that arrive, in the first half of the steps

class Loop {
public:
    Loop(const Options& options, const Kernels& kernels, std::int64_t layers, int threads)
        : steps_(options.steps),
          memory_(layers, kPages * Shape::kPageSize),
          activations_(options.seed),
          runner_(kernels, memory_, activations_, threads),
          pages_(kPages, Shape::kPageSize),
          scheduler_(pages_, Shape::kPageSize, kPrefillBudget),
          random_(options.seed) {}

    /// Sequences in mid-decode.
    void restore_sequences() {
        Progress progress("restoring", kRestored);
        for (int i = 0; i < kRestored; ++i) {
            Sequence sequence{between(1000, 2600), between(8, 200)};
            scheduler_.reserve(sequence, sequence.prompt);
            Step step;
            step.work.push_back({&sequence, sequence.prompt});
            runner_.store_past(RaggedBatch(step));
            sequence.stored = sequence.prompt;
            scheduler_.submit(std::move(sequence));
            progress.show(i + 1);
        }
        result_.sequences += kRestored;
    }

    void submit_requests() {
        for (int i = 0; i < kRequests; ++i) {
            scheduler_.submit({between(100, 1500), between(4, 40), i * steps_ / kRequests / 2});
        }
        result_.sequences += kRequests;
    }

    void run_steps(Checker& checker) {
        Progress progress("steps", steps_);
        for (int number = 0; number < steps_; ++number) {
            const Step step = scheduler_.begin_step(number);
            if (!step.work.empty()) {
                Tally& tally = step.prefill_tokens == 0 ? result_.decode_only : result_.mixed;
                runner_.run(RaggedBatch(step), number % memory_.layers(), tally, checker);
            }
            scheduler_.end_step(step);
            progress.show(number + 1, std::to_string(step.decoding) + " decoding, " +
                                          std::to_string(step.prefill_tokens) + " prompt tokens");
        }
        result_.finished = scheduler_.finished();
    }

    const LoopResult& result() const { return result_; }

private:
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }

    int steps_;
    CacheMemory memory_;
    Activations activations_;
    StepRunner runner_;
    PageAllocator pages_;
    Scheduler scheduler_;
    std::mt19937_64 random_;
    LoopResult result_;
};

}  // namespace

LoopResult run_loop(const Options& options, const Kernels& kernels, std::int64_t layers, int threads,
                    Checker& checker) {
    Loop loop(options, kernels, layers, threads);
    loop.restore_sequences();
    loop.submit_requests();
    loop.run_steps(checker);
    return loop.result();
}

std::int64_t cache_bytes(std::int64_t layers) {
    return layers * kPages * Shape::kPageSize * Shape::kTokenBytes;
}

std::int64_t layers_that_fit(std::int64_t wanted) {
    const std::int64_t free_bytes = ::sysconf(_SC_AVPHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
    return std::clamp<std::int64_t>(free_bytes / 2 / cache_bytes(1), 1, wanted);
}

}  // namespace demo
