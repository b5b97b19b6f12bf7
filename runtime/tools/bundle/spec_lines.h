// The specs that a bundle is made of, as text.
#pragma once

#include <string_view>
#include <vector>

#include "generator/error.h"
#include "generator/spec.h"

namespace kvjit::tool {

/// A spec a line; what follows a # and empty lines are passed over. Each spec once, in the order of the text. Errors:
/// KVJIT_BAD_SPEC, whose message begins with the line.
gen::Result<std::vector<gen::KernelSpec>> expand_specs(std::string_view text);

}  // namespace kvjit::tool
