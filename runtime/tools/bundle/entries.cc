#include "bundle/entries.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "bundle/files.h"
#include "parallel.h"
#include "targets.h"

namespace kvjit::tool {
namespace {

/// The named targets alone, without lesser ones that may serve.
Result<std::vector<gen::Target>> find_targets(std::span<const std::string> names) {
    std::vector<gen::Target> targets;
    for (const std::string& name : names) {
        const gen::Result<const gen::TargetList*> found = rt::find_targets(name);
        if (!found) return fail(error_text(found.error()));
        if (std::ranges::find(targets, (*found)->front()) == targets.end()) targets.push_back((*found)->front());
    }
    return targets;
}

void add_jobs(EntryJobs& jobs, const std::vector<gen::Program>& programs, const gen::Target& target,
              const std::string& spec) {
    for (const gen::Program& program : programs) {
        jobs.jobs.try_emplace(gen::identity_text(program, target), EntryJob{target, program, spec});
    }
}

/// The state shared by the threads that make entries.
class Making {
public:
    Making(rt::Images& images, const EntryJobs& jobs, const std::function<void(const EntryJob&)>& done)
        : images_(images), done_(done) {
        for (const auto& [identity, job] : jobs.jobs) jobs_.push_back(&job);
        made_.resize(jobs_.size());
    }

    /// Does nothing once an entry has failed.
    void make(std::size_t i) {
        if (failed_) return;
        const EntryJob& job = *jobs_[i];
        const gen::Result<gen::KernelSpec> spec = gen::parse_spec(job.spec);  // for the log
        gen::Result<rt::MadeEntry> made = images_.entry({&job.target, &job.program, spec ? &*spec : nullptr});
        const std::lock_guard lock(mutex_);
        if (made) {
            made_[i] = *std::move(made);
            done_(job);
        } else if (!failed_.exchange(true)) {
            failure_ = std::string(job.program.info->label) + " of " + job.spec + " for " + job.target.name() + ": " +
                       error_text(made.error());
        }
    }

    Result<std::vector<rt::MadeEntry>> take() {
        if (failed_) return fail(failure_);
        std::vector<rt::MadeEntry> all;
        for (std::optional<rt::MadeEntry>& made : made_) all.push_back(*std::move(made));
        return all;
    }

private:
    rt::Images& images_;
    const std::function<void(const EntryJob&)>& done_;
    std::vector<const EntryJob*> jobs_;
    std::atomic<bool> failed_{false};
    std::mutex mutex_;  // guards what follows
    std::vector<std::optional<rt::MadeEntry>> made_;
    std::string failure_;
};

}  // namespace

Result<EntryJobs> plan_entries(std::span<const gen::KernelSpec> specs, std::span<const std::string> names) {
    const Result<std::vector<gen::Target>> targets = find_targets(names);
    if (!targets) return fail(targets.error());
    EntryJobs jobs;
    for (const gen::KernelSpec& spec : specs) {
        const std::string text = gen::print_spec(spec);
        const std::size_t left_out_before = jobs.left_out.size();
        for (const gen::Target& target : *targets) {
            const gen::Result<std::vector<gen::Program>> programs = gen::lower(spec, target);
            if (programs) {
                add_jobs(jobs, *programs, target, text);
            } else {
                jobs.left_out.push_back(text + " for " + target.name() + ": " + programs.error().message);
            }
        }
        const bool is_nowhere = jobs.left_out.size() - left_out_before == targets->size();
        if (is_nowhere) return fail("no target can have " + jobs.left_out.back());
    }
    return jobs;
}

Result<std::vector<rt::MadeEntry>> make_entries(rt::Images& images, const EntryJobs& jobs, std::size_t threads,
                                                const std::function<void(const EntryJob&)>& done) {
    Making making(images, jobs, done);
    rt::in_parallel(threads, jobs.jobs.size(), [&](std::size_t i) { making.make(i); });
    return making.take();
}

}  // namespace kvjit::tool
