// The part of help that is about a spec's fields.
#pragma once

#include <string>

namespace kvjit::tool {

/// The spec's fields, what each takes, its default and what it means.
std::string spec_fields_help();
/// Without those of Relayout, for commands that don't take it.
std::string call_fields_help();

}  // namespace kvjit::tool
