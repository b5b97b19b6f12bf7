#include "prepare.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "check/fault.h"
#include "no_fork.h"
#include "parallel.h"
#include "usable_cores.h"

namespace kvjit::rt {
namespace {

/// The work on one spec.
struct Share {
    const gen::KernelSpec* spec;
    KernelPtr kernel;                                 // null: refused
    std::vector<std::optional<gen::Error>> failures;  // by program
    std::uint32_t left = 0;                           // bits of programs that no store has
    std::size_t missing = 0;                          // how many of these are unfinished

    const gen::Error* failure() const {
        const auto failed = std::ranges::find_if(failures, [](const auto& failure) { return failure.has_value(); });
        return failed != failures.end() ? &**failed : nullptr;
    }
};

/// One program of one spec.
struct Job {
    std::size_t share;
    std::size_t place;  // index in failures
    std::uint32_t bit;
};

class Preparation {
public:
    Preparation(Engine& engine, std::span<const gen::KernelSpec> specs, const gen::TargetList& targets,
                const PrepareOptions& options)
        : options_(options) {
        for (const gen::KernelSpec& spec : specs) shares_.push_back(share(engine, spec, targets));
    }

    /// First takes from stores what they have of all specs: that decides on each kernel's target.
    gen::Result<void> run() {
        const std::size_t threads = options_.num_threads != 0 ? options_.num_threads : usable_cores();
        in_parallel(threads, shares_.size(), [this](std::size_t i) { take_stored(shares_[i]); });
        for (std::size_t i = 0; i < shares_.size(); ++i) add_jobs(i);
        for (const Share& share : shares_) {
            if (share.missing == 0) tell(share);
        }
        in_parallel(threads, jobs_.size(), [this](std::size_t i) { make(jobs_[i]); });
        return outcome();
    }

private:
    static Share share(Engine& engine, const gen::KernelSpec& spec, const gen::TargetList& targets) {
        const NoFork no_fork;
        gen::Result<KernelPtr> kernel = engine.kernel(spec, targets);
        if (kernel) return {&spec, *std::move(kernel), {}};
        return {&spec, nullptr, {kernel.error()}};
    }

    void take_stored(Share& share) const {
        if (!share.kernel) return;
        const gen::Result<std::uint32_t> left = share.kernel->take_stored(share.kernel->bits() & options_.programs);
        if (left) {
            share.left = *left;
        } else {
            share.failures = {left.error()};
        }
    }

    void add_jobs(std::size_t i) {
        Share& share = shares_[i];
        for (std::uint32_t left = share.left; left != 0; left &= left - 1) {
            jobs_.push_back({i, share.missing++, left & -left});
        }
        if (share.left != 0) share.failures.resize(share.missing);
    }

    void make(const Job& job) {
        const gen::Result<ImageSet> ready = shares_[job.share].kernel->prepare(job.bit);
        finish(job, ready ? std::nullopt : std::optional(ready.error()));
    }

    void finish(const Job& job, std::optional<gen::Error> failure) {
        Share& share = shares_[job.share];
        const std::lock_guard lock(mutex_);
        share.failures[job.place] = std::move(failure);
        if (--share.missing == 0) tell(share);
    }

    void tell(const Share& share) {
        ++done_;
        if (options_.progress) options_.progress(done_, *share.spec, share.failure());
    }

    gen::Result<void> outcome() const {
        const auto failed = [](const Share& share) { return share.failure() != nullptr; };
        const auto first = std::ranges::find_if(shares_, failed);
        if (first == shares_.end()) return {};
        const std::int64_t count = std::ranges::count_if(shares_, failed);
        const std::string name = text("specs[", first - shares_.begin(), "]");
        return gen::fail(first->failure()->status, name,
                         text(count, " of ", shares_.size(), " specs can't be prepared, ", name, " first (",
                              gen::print_spec(*first->spec), "): ", first->failure()->message),
                         count, 0);
    }

    const PrepareOptions& options_;
    std::vector<Share> shares_;
    std::vector<Job> jobs_;
    std::mutex mutex_;  // guards what jobs change: failures, missing, done_; held during calls of progress
    std::size_t done_ = 0;
};

}  // namespace

gen::Result<void> prepare_all(Engine& engine, std::span<const gen::KernelSpec> specs, const gen::TargetList& targets,
                              const PrepareOptions& options) {
    if (auto known = check_programs(options.programs); !known) return known;
    return Preparation(engine, specs, targets, options).run();
}

}  // namespace kvjit::rt
