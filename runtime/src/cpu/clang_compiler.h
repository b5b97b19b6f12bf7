// The compiler for CPUs: Clang, in libkvjit_compiler, opened at the first compile. This header needs nothing of LLVM.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "compiler.h"

namespace kvjit::rt {

class CpuCompiler : public Compiler {
public:
    /// Where libkvjit_compiler is looked for, in this order.
    virtual std::span<const std::string> paths() const = 0;
    /// "cuda/store.cu:40": the line that the instruction at `address`, of a loaded object, was compiled from; "an
    /// unknown line" where no object, or no compiler, tells. For error messages: slow. Thread-safe.
    virtual std::string code_line(std::uint64_t address) = 0;
};

/// `path`: of libkvjit_compiler.so; empty: $KVJIT_COMPILER (ignored when set-user-id), else the file beside the library
/// or executable that holds this function, else ../lib beside it. `flags`: cc1's beyond those of cpu/clang/flags.h.
std::unique_ptr<CpuCompiler> make_compiler(std::string path, std::span<const char* const> flags = {});

}  // namespace kvjit::rt
