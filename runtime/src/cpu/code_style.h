// How the compiler of CPUs makes code, as the environment asks for it.
#pragma once

#include <string>

#include "cpu/clang_compiler.h"

namespace kvjit::rt {

/// Reads KVJIT_DEBUG. `templates`: the folder of templates, which lines of code for debuggers and profilers then name;
/// empty: those in the library.
CompilerSettings settings_of_environment(const std::string& templates);

}  // namespace kvjit::rt
