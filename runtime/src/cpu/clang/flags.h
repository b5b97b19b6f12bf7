// The cc1 flags of every compile. They stand in the provenance, so a change here makes no stale cache entry match.
#pragma once

#include <array>
#include <string_view>

namespace kvjit::rt {

inline constexpr std::array kClangFlags = std::to_array<const char*>({
    "-std=c++20",
    "-x",
    "c++",
    "-O3",
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
    // Bytes of the product depend on the source alone.
    "-fno-ident",
    "-fdebug-compilation-dir=.",
    "-debug-info-kind=line-tables-only",
    "-dwarf-version=5",
});

}  // namespace kvjit::rt
