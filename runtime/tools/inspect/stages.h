// The stages that `kvjit inspect --emit` takes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "inspect/images.h"
#include "json.h"
#include "kvjit/kvjit.h"
#include "result.h"

namespace kvjit::tool {

/// How assembly is shown.
struct AssemblyStyle {
    bool raw = false;    // with directives and data
    bool lines = false;  // with the source's lines in front of their instructions
};

/// Names of all stages, the default first.
std::vector<std::string> stage_names();
bool is_binary_stage(const std::string& stage);
/// "decode.s"
std::string stage_file(const std::string& stage, const ShownImage& image);

/// A kernel that is shown, and what it was made of.
struct ShownKernel {
    kvjit_kernel* kernel;
    kvjit_spec spec;
};

/// A stage's text or bytes; the summary as an object. Errors: the library's, or what the stage lacks.
Result<Json> stage_of(const std::string& stage, const ShownKernel& kernel, const ShownImage& image,
                      AssemblyStyle style);
/// The same as text or bytes to print. `told`: see summary_text.
Result<std::string> stage_text(const std::string& stage, const ShownKernel& kernel, const ShownImage& image,
                               AssemblyStyle style, std::set<std::string>& told);

}  // namespace kvjit::tool
