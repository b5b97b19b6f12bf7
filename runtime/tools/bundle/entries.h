// Compiled entries for a bundle: of every program of specs, for every target.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "generator/program.h"
#include "generator/spec.h"
#include "images/images.h"
#include "result.h"

namespace kvjit::tool {

/// An entry to compile: each program once, though several specs have it.
struct EntryJob {
    gen::Target target;
    gen::Program program;
    std::string spec;  // the first that has it
};

struct EntryJobs {
    std::map<std::string, EntryJob> jobs;  // by identity
    std::vector<std::string> left_out;     // "SPEC for TARGET: why": pairs that have no kernel
};

/// Errors: a spec that none of the targets supports, an unknown target.
Result<EntryJobs> plan_entries(std::span<const gen::KernelSpec> specs, std::span<const std::string> targets);

/// The entries, compiled or found, in the order of the jobs. `done` is called with each, by one thread at a time. The
/// first failure, which names spec and target, ends the work. Rethrows what compiling threw on any thread.
Result<std::vector<rt::MadeEntry>> make_entries(rt::Images& images, const EntryJobs& jobs, std::size_t threads,
                                                const std::function<void(const EntryJob&)>& done);

}  // namespace kvjit::tool
