// `kvjit inspect`: what a spec becomes, in every stage.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kvjit/kvjit.h"
#include "result.h"

namespace kvjit::tool {

struct InspectOptions {
    std::string spec;
    std::string target = "host";
    kvjit_stage stage = KVJIT_STAGE_IDENTITY;
    bool why = false;     // instead of a stage: which algorithm serves each program
    bool images = false;  // the same: what is run for each, and where that is from
    std::string program = "all";
    std::vector<std::string> bundles;                     // files that the engine is given
    std::function<Result<void>(std::string_view)> write;  // takes what is shown; empty: standard output does
};

/// What --program takes: names of programs, and all, as bits of kvjit_programs.
std::map<std::string, std::uint32_t> program_names();

/// Prints the stage of each program, or why which algorithm serves it, or what is run. Exit status 0, or 2 if the spec,
/// the target or a bundle is bad, there is no such kernel, the op has no such program, or it can't be shown.
int inspect(const InspectOptions& options);

/// The spec's fields, what each takes, its default and what it means.
std::string spec_fields_help();

}  // namespace kvjit::tool
