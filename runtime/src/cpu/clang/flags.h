// How every compile is done: Clang's flags and LLVM's passes. Both stand in the provenance, so a change here makes no
// stale cache entry match.
#pragma once

#include <array>
#include <string_view>

namespace kvjit::rt {

/// cc1's.
inline constexpr std::array kClangFlags = std::to_array<const char*>({
    "-std=c++20",
    "-x",
    "c++",
    // The level of code generation alone: passes before it are kClangPasses. Level 1 saves 2% of a compile, and costs a
    // store of int8 20%; level 3 makes nothing faster.
    "-O2",
    "-disable-llvm-passes",
    // Nothing of the machine: no header, no libc, no run-time type information.
    "-ffreestanding",
    "-nostdsysteminc",
    "-nobuiltininc",
    "-fno-rtti",
    // A constructor of a global would never run: the loader runs the entry point only.
    "-Werror=global-constructors",
    "-Wall",
    "-Wno-psabi",
    "-Wno-unused-const-variable",  // the spec block serves all programs
    // All code and data of an image lie in one mapping and are reached relative to the program counter.
    "-mrelocation-model",
    "pic",
    "-pic-level",
    "2",
    "-fvisibility=hidden",
    // a * b + c in one expression fuses, nothing else does: numerics are fixed by the source.
    "-ffp-contract=on",
    // Without it, tuning for some CPUs splits 64-byte vectors in halves.
    "-mprefer-vector-width=512",
    // Clang's own output is not checked again, as in its driver.
    "-disable-llvm-verifier",
    // Templates reach memory as vectors of bytes that may alias anything: types would tell LLVM next to nothing.
    "-relaxed-aliasing",
    // Bytes of the product depend on the source alone.
    "-fno-ident",
    "-fdebug-compilation-dir=.",
    // Frames are up to 600 KiB: each page is touched in turn, so that a stack that is too small meets its guard page.
    "-fstack-clash-protection",
    // Lines, for debuggers and profilers. Columns would cost 2% of a compile.
    "-debug-info-kind=line-tables-only",
    "-gno-column-info",
    "-dwarf-version=5",
});

/// LLVM's passes from Clang's IR to optimised IR, as `opt -passes=` reads them: what templates need of -O3, whose
/// passes take three times as long for code that is no faster. Templates are many small functions whose loops are
/// written as they should run: there is nothing to vectorise or to version.
inline constexpr std::string_view kClangPasses =
    // Small functions shrink before they are copied into their callers; then only phases and the entry are left. What
    // Clang writes for `a ? b : c` of vectors, ten operations on masks, must become a select here: inlined as it is, it
    // becomes narrow ones, which cost instructions (9% of storing int8).
    "function(sroa<modify-cfg>,instcombine<no-verify-fixpoint>),cgscc(inline),globaldce,"
    "function(sroa<modify-cfg>,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,"
    // Loops that are to be unrolled whole become plain code, whose arrays become registers.
    "loop-mssa(loop-rotate,licm<allowspeculation>),loop(loop-unroll-full),"
    "sroa<modify-cfg>,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    // Others are unrolled in part, where the template asks for it or rows are long: a third of load's time at head_dim
    // 512.
    "loop-unroll<O2;no-runtime>,"
    // What a template asks for and doesn't get is a warning.
    "transform-warning)";

}  // namespace kvjit::rt
