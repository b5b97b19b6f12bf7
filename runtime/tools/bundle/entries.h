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

/// What is to be compiled: each program once, though several specs have it.
struct EntryJob {
    gen::Target target;
    gen::Program program;
    std::string spec;  // the first that has it
};

struct EntryJobs {
    std::map<std::string, EntryJob> jobs;  // by identity
    std::vector<std::string> left_out;     // "SPEC for TARGET: why": what no kernel can be asked for
};

/// Errors: a spec that none of the targets can have, an unknown target.
Result<EntryJobs> plan_entries(std::span<const gen::KernelSpec> specs, std::span<const std::string> targets);

/// In the order of the jobs. `done` is called on one thread at a time, with what was compiled or found. The first
/// failure ends it, and names spec and target. Throws what compiling threw, on whichever thread.
Result<std::vector<rt::MadeEntry>> make_entries(rt::Images& images, const EntryJobs& jobs, std::size_t threads,
                                                const std::function<void(const EntryJob&)>& done);

}  // namespace kvjit::tool
