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
    bool images = false;  // instead of a stage: each program's image and its origin
    std::string program = "all";
    std::vector<std::string> bundles;                     // files to add to the engine
    std::function<Result<void>(std::string_view)> write;  // receives the output; empty: standard output
};

/// Values of --program: names of programs, and all, as bits of kvjit_programs.
std::map<std::string, std::uint32_t> program_names();

/// Prints each program's stage, or why which algorithm serves it, or its image. Exit status 0, or 2 if the spec, the
/// target or a bundle is bad, there is no such kernel, the op has no such program, or the stage can't be had.
int inspect(const InspectOptions& options);

/// The spec's fields, what each takes, its default and what it means.
std::string spec_fields_help();

}  // namespace kvjit::tool
