// `kvjit inspect`: what a spec becomes, in every stage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kvjit/kvjit.h"
#include "result.h"

namespace kvjit::tool {

struct InspectOptions {
    std::string spec;
    std::string target = "host";
    std::vector<std::string> stages;  // names of stages (stages.h)
    bool why = false;                 // instead of stages: which algorithm serves each program
    bool images = false;              // instead of stages: each program's image and its origin
    bool json = false;
    bool raw = false;    // assembly as the compiler wrote it
    bool lines = false;  // assembly with the source's lines
    std::string program = "all";
    std::vector<std::string> bundles;   // files to add to the engine
    std::optional<std::string> output;  // a file, or a folder; nothing: standard output
};

/// Shows each program's stages, or why which algorithm serves it, or its image. Loads nothing, so that nothing of the
/// process is asked for. Errors: the spec, the target or a bundle is bad, there is no such kernel, the op has no such
/// program, or a stage can't be had or written.
Result<int> inspect(const InspectOptions& options);

/// The identities of a spec's programs, as the stage has them.
Result<std::string> identities(const InspectOptions& options);

}  // namespace kvjit::tool
