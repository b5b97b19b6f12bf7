// The flags of every compile: Clang's, and LLVM's passes. Both are in the provenance, so a change here invalidates
// older cache entries.
#pragma once

#include <array>
#include <string_view>

namespace kvjit::rt {

/// For clang -cc1.
inline constexpr std::array kClangFlags = std::to_array<const char*>({
    "-std=c++20",
    "-x",
    "c++",
    // The level of code generation alone: the passes before it are kClangPasses. Level 1 saves 2% of a compile and
    // costs 20% of an int8 store; level 3 makes nothing faster.
    "-O2",
    "-disable-llvm-passes",
    // Nothing from the machine: no header, no libc, no run-time type information.
    "-ffreestanding",
    "-nostdsysteminc",
    "-nobuiltininc",
    "-fno-rtti",
    // The bodies of templates that a program doesn't use, such as other types' products, are not parsed.
    "-fdelayed-template-parsing",
    // A global's constructor would never run: the loader calls only the entry point.
    "-Werror=global-constructors",
    // Of warnings those that Clang has on by default. -Wall's follow each function's flow: 2% of a compile.
    "-Wno-psabi",
    // All code and data of an image lie in one mapping and are reached relative to the program counter.
    "-mrelocation-model",
    "pic",
    "-pic-level",
    "2",
    "-fvisibility=hidden",
    // a * b + c in one expression fuses, nothing else does: numerics are fixed by the source.
    "-ffp-contract=on",
    // Without this, tuning for some CPUs splits 64-byte vectors in halves.
    "-mprefer-vector-width=512",
    // Clang's own output is not checked again, as in its driver.
    "-disable-llvm-verifier",
    // Marks of where a variable begins and ends would let variables share stack, of which next to nothing is saved:
    // most become registers. 1% of a compile.
    "-disable-lifetime-markers",
    // Templates reach memory as vectors of bytes that may alias anything: types would tell LLVM next to nothing.
    "-relaxed-aliasing",
    // The object's bytes depend on the source alone.
    "-fno-ident",
    "-fdebug-compilation-dir=.",
    // Frames take up to 600 KiB: each page is touched in turn, so that a stack that is too small hits its guard page.
    "-fstack-clash-protection",
    // Lines, for debuggers and profilers. Columns would cost 2% of a compile.
    "-debug-info-kind=line-tables-only",
    "-gno-column-info",
    "-dwarf-version=5",
});

/// LLVM's passes from Clang's IR to optimised IR, in the language of `opt -passes=`: the part of -O3 that templates
/// need. All of it would take three times as long for code that is no faster. Templates are many small functions whose
/// loops are written as they should run: there is nothing to vectorise or to version.
inline constexpr std::string_view kClangPasses =
    // Small functions shrink before they are inlined; after that only the entry and what is never inlined remain.
    // Clang's code for `a ? b : c` of vectors, ten operations on masks, must become a select here: inlined first, it
    // becomes narrow operations, which cost instructions (9% of storing int8).
    "function(sroa<modify-cfg>,instcombine<no-verify-fixpoint>),cgscc(inline),globaldce,"
    // From here on two threads share the functions. Each has the constants of its own.
    "halves,globaldce,"
    "function(sroa<modify-cfg>,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,"
    // Loops to unroll fully become straight code, whose arrays become registers.
    "loop-mssa(loop-rotate,licm<allowspeculation>),loop(loop-unroll-full),"
    "sroa<modify-cfg>,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    // Others are unrolled partly, where the template requests it or rows are long: a third of load's time at head_dim
    // 512.
    "loop-unroll<O2;no-runtime>,"
    // A transformation that a template requests and doesn't get is a warning.
    "transform-warning),"
    // Left out of code generation: it follows variables for debuggers, whom optimised code tells lines alone.
    "-livedebugvalues";

/// KVJIT_DEBUG=frames, beyond kClangFlags: profilers walk from a kernel's code to its callers.
inline constexpr std::array kFramesFlags = std::to_array<const char*>({"-mframe-pointer=all"});

/// KVJIT_DEBUG=1, beyond kClangFlags, whose level and lines they replace: every variable has its place on the stack,
/// and each function of a template is a function of its own. Clang warns of what it finds in those.
inline constexpr std::array kLocalsFlags =
    std::to_array<const char*>({"-O0", "-debug-info-kind=limited", "-mframe-pointer=all", "-Wall",
                                "-Wno-unused-const-variable"});  // the spec block serves all programs
inline constexpr std::string_view kLocalsPasses = "no-op-module";

}  // namespace kvjit::rt
