// A program on a target, as requested from stores and compilers. Its names are computed at first use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler.h"
#include "generator/program.h"
#include "generator/render.h"
#include "images/entry_key.h"

namespace kvjit::rt {

/// A program, lowered for the target. The caller owns everything.
struct Candidate {
    const gen::Target* target;
    const gen::Program* program;
    const gen::KernelSpec* spec = nullptr;  // the program's spec, for traces and callbacks
};

/// "attend_decode-4f1c09d2": what perf, gdb and logs call the image of this identity. `program`: its name there.
std::string image_name(std::string_view program, const std::string& identity);

/// Not thread-safe. `compiler` and `templates` outlive it.
class Wanted {
public:
    Wanted(const Candidate& candidate, Compiler& compiler, const gen::Templates& templates);

    const gen::Program& program() const { return *candidate_.program; }
    const gen::Target& target() const { return *candidate_.target; }
    /// Null: not known.
    const gen::KernelSpec* spec() const { return candidate_.spec; }
    /// The identity; reads no template.
    const std::string& identity() const;
    /// The rendered source.
    const gen::Result<std::string>& source();
    /// `source` compiled. An error names the files of the folder that has the templates, if one has; the log, which
    /// stores keep, is the same wherever they are.
    gen::Result<CompileOutput> compile(const std::string& source, CompileStage stage) const;
    /// Errors: KVJIT_BAD_FILE for templates. A missing compiler is no error, see EntryKey.
    gen::Result<EntryKey> key();
    std::string name() const { return image_name(program().info->name, identity()); }

private:
    Candidate candidate_;
    Compiler& compiler_;
    const gen::Templates& templates_;
    mutable std::string identity_;  // "": not computed yet; most candidates are never looked up
    std::optional<gen::Result<std::string>> source_;
};

}  // namespace kvjit::rt
