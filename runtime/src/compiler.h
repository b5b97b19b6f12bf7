// A compiler as the engine sees it: source in, an image's bytes out.
#pragma once

#include <string>
#include <string_view>

#include "generator/error.h"
#include "generator/target.h"

namespace kvjit::rt {

struct CompileOutput {
    std::string object;  // ELF relocatable or cubin; or text, depending on the stage
    std::string log;     // the compiler's warnings and remarks; of CUDA, ptxas's report
};

enum class CompileStage { kObject, kIr, kIrUnoptimised, kAsm };

class Compiler {
public:
    virtual ~Compiler() = default;
    /// Identifies the compiler and its flags, wherever they are installed: its libraries' build ids, flags. Part of the
    /// provenance. Doesn't load the compiler. Errors: KVJIT_COMPILER_MISSING.
    virtual gen::Result<std::string> identity() = 0;
    /// `name`: the object's name for its source file, such as "attend_decode". The object has no undefined symbol.
    /// Errors: KVJIT_COMPILER_MISSING, KVJIT_COMPILE_FAILED with the log, KVJIT_BAD_TARGET where the compiler doesn't
    /// know the target. Thread-safe, parallel.
    virtual gen::Result<CompileOutput> compile(std::string_view source, std::string_view name,
                                               const gen::Target& target, CompileStage stage) = 0;
    /// Text that begins the sources of code that must serve none but who asked for it (KVJIT_DEBUG): their digests are
    /// then other ones, also where a store's entry serves whatever its maker was. Empty for usual code; else a comment.
    virtual std::string_view mark() const { return {}; }
    /// The target that code for `target` is actually compiled for, which identities name: `target`, unless the compiler
    /// only knows an older one whose code runs there. Thread-safe.
    virtual gen::Target known_target(const gen::Target& target) { return target; }
    /// Seconds that opening the compiler's library took; 0 until it is open.
    virtual double load_seconds() const = 0;
};

}  // namespace kvjit::rt
