// The compiler for CPUs: Clang, in libkvjit_compiler, opened at the first compile. This header needs nothing of LLVM.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler.h"
#include "cpu/clang/flags.h"

namespace kvjit::rt {

class CpuCompiler : public Compiler {
public:
    /// Where libkvjit_compiler is looked for, in this order.
    virtual std::span<const std::string> paths() const = 0;
    /// "cuda/store.cu:40": the line that the instruction at `address`, of a loaded object, was compiled from; "an
    /// unknown line" where no object, or no compiler, tells. For error messages: slow. Thread-safe.
    virtual std::string code_line(std::uint64_t address) = 0;
};

/// How code is made.
struct CompilerSettings {
    std::vector<std::string> flags = {};     // cc1's, beyond kClangFlags
    std::string_view passes = kClangPasses;  // of static storage
    std::string_view mark = {};              // see Compiler::mark; of static storage
};

/// `path`: of libkvjit_compiler.so; empty: $KVJIT_COMPILER (ignored when set-user-id), else the file beside the library
/// or executable that holds this function, else ../lib beside it.
std::unique_ptr<CpuCompiler> make_compiler(std::string path, CompilerSettings settings = {});

}  // namespace kvjit::rt
