// The CPU compiler as the runtime sees it: source in, object out. Clang lives in libkvjit_compiler, opened at the
// first compile; nothing in this header needs LLVM.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "generator/error.h"
#include "generator/target.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

struct CompileOutput {
    std::string object;  // ELF relocatable, or IR / assembly text as `stage` asked
    std::string log;     // the compiler's warnings and remarks
};

enum class CompileStage { kObject, kIr, kAsm };

class Compiler {
public:
    virtual ~Compiler() = default;
    /// Text that changes whenever the compiler or its flags do: library path, size, mtime, build id, flags. Part of
    /// the provenance. Doesn't load the compiler. Errors: KVJIT_COMPILER_MISSING.
    virtual gen::Result<std::string> identity() = 0;
    /// `name`: what the object calls its source file, "attend_decode.cc". The object has no undefined symbol.
    /// Errors: KVJIT_COMPILER_MISSING, KVJIT_COMPILE_FAILED with the log. Thread-safe, parallel.
    virtual gen::Result<CompileOutput> compile(std::string_view source, std::string_view name,
                                               const gen::Target& target, CompileStage stage) = 0;
    /// Seconds that opening the compiler's library took; 0 while it isn't open.
    virtual double load_seconds() const = 0;
};

/// `path`: of libkvjit_compiler.so; empty: $KVJIT_COMPILER (ignored when set-user-id), else the file beside the library
/// or executable that holds this function, else ../lib beside it.
std::unique_ptr<Compiler> make_compiler(std::string path);

}  // namespace kvjit::rt
