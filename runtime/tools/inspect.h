// `kvjit inspect`: what a spec becomes, in every stage.
#pragma once

#include <cstdint>
#include <string>

#include "kvjit/kvjit.h"

namespace kvjit::tool {

struct InspectOptions {
    std::string spec;
    std::string target = "host";
    kvjit_stage stage = KVJIT_STAGE_IDENTITY;
    std::uint32_t phases = KVJIT_ALL_PHASES;
};

/// Prints the stage of each program. Exit status 0, or 2 if the spec or the target is bad or a compile fails.
int inspect(const InspectOptions& options);

/// The spec's fields, what each takes, its default and what it means.
std::string spec_fields_help();

}  // namespace kvjit::tool
