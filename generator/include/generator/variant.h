// Variants: the algorithms that a program has on a backend, in order of preference. The first that serves a spec on a
// target makes the program's code. docs/architecture.md tells how to add one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/shape.h"
#include "generator/error.h"
#include "generator/spec.h"
#include "generator/target.h"

namespace kvjit::gen {

enum class ProgramKind { kStore, kLoad, kAttendDecode, kAttendPrefill, kMerge, kCheck };
inline constexpr int kProgramKinds = 6;

struct Variant {
    std::string_view name;           // "mma"; part of the identity
    std::string_view template_path;  // "cuda/attend_decode_mma.cu"
    /// Part of the identity: raised when the results or the arguments of its code change, so that no store of older
    /// kernels answers for it. tests/unit/generator/revisions.txt ties it to the templates' text, and to flags and
    /// target_constants.
    int revision;
    /// Nothing where it serves the spec on the target; else the first thing of the two that it can't do.
    Result<void> (*serves)(const KernelSpec&, const Target&);
    /// CUDA: the shape of its blocks. All zero on CPUs, where a call of the code is one item.
    LaunchShape (*launch)(const KernelSpec&, const Target&);
};

/// The preferred one first. Empty where the backend has no such program.
std::span<const Variant> variants(ProgramKind kind, Backend backend);

/// The first of `variants(kind, target.backend)` that serves. Errors: KVJIT_BAD_SPEC, what the last one can't do.
Result<const Variant*> choose_variant(ProgramKind kind, const KernelSpec& spec, const Target& target);

/// What became of each variant, a line each: "mma declines: t1 is f32; ...", "dot serves", "... is not asked".
std::string explain_variants(ProgramKind kind, const KernelSpec& spec, const Target& target);

}  // namespace kvjit::gen
