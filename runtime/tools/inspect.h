// `kvjit inspect`: what a spec becomes, in every stage.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "kvjit/kvjit.h"

namespace kvjit::tool {

struct InspectOptions {
    std::string spec;
    std::string target = "host";
    kvjit_stage stage = KVJIT_STAGE_IDENTITY;
    bool why = false;  // instead of a stage: which algorithm serves each program
    std::string program = "all";
};

/// What --program takes: names of programs, and all, as bits of kvjit_programs.
extern const std::map<std::string, std::uint32_t> kPrograms;

/// Prints the stage of each program, or why which algorithm serves it. Exit status 0, or 2 if the spec or the target is
/// bad, there is no such kernel, the op has no such program, or a compile fails.
int inspect(const InspectOptions& options);

/// The spec's fields, what each takes, its default and what it means.
std::string spec_fields_help();

}  // namespace kvjit::tool
