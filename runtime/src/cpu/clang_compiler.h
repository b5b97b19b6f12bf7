// The compiler for CPUs: Clang, in libkvjit_compiler, opened at the first compile. This header needs nothing of LLVM.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "compiler.h"

namespace kvjit::rt {

/// `path`: of libkvjit_compiler.so; empty: $KVJIT_COMPILER (ignored when set-user-id), else the file beside the library
/// or executable that holds this function, else ../lib beside it. `flags`: cc1's beyond those of cpu/clang/flags.h.
std::unique_ptr<Compiler> make_compiler(std::string path, std::span<const char* const> flags = {});

}  // namespace kvjit::rt
