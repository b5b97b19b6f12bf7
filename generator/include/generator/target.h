// An instruction set, resolved to plain values. This machine's is detected by runtime/src/cpu/host.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/architecture.h"
#include "generator/error.h"
#include "generator/x86.h"

namespace kvjit::gen {

/// Which templates a target's programs come from, and what compiles and runs them.
enum class Backend {
    kCpu,           // templates/cpu: Clang, this machine
    kCuda,          // templates/cuda: NVRTC, a GPU
    kCudaEmulated,  // templates/cuda: Clang, this machine, a fiber for each thread
};
inline constexpr int kBackends = 3;

/// What code is compiled for. Machines with equal targets share code.
struct Target {
    Backend backend = Backend::kCpu;
    X86Features features;       // CPU and emulation
    Architecture architecture;  // CUDA
    int device = 0;             // CUDA: which GPU runs the kernels, by its ordinal. Not in the text: code is the same
    bool wgmma = false;         // emulation: of sm_90a, which multiplies by warpgroups. Not in the text: variants of
                                // programs are
    bool emulates_amx = false;  // CPU: portable code stands for AMX's instructions, bit for bit

    bool has(std::string_view feature) const { return has_feature(features, feature); }
    /// Bytes of the widest vector that a CPU's kernels use: 64, 32 or 16.
    int vector_bytes() const;
    /// Whether a CPU multiplies pairs of bfloat16 at the rate of float32's FMA. AMD's do; where Intel's have the
    /// instruction, it takes four times as long.
    bool multiplies_bfloat16() const;
    /// Whether a CPU's kernels may multiply matrices by AMX, or by what stands for it. feature: "amx-bf16" or
    /// "amx-int8".
    bool multiplies_tiles(std::string_view feature) const;
    /// Whether a GPU's kernels may multiply by warpgroups, as Hopper's alone do.
    bool multiplies_by_warpgroups() const;
    /// "x86-64-v3", "x86-64-v4+gfni", "x86-64-v3+amx-emulated", "sm_90a"; of the emulation "x86-64-v3+wgmma".
    std::string name() const;
    /// The same without what the text lacks.
    std::string code_name() const;
    /// The text, and what it lacks: "cuda-emulated:x86_64-unknown-linux-gnu:x86-64-v3+wgmma".
    std::string full_text() const;
    /// "x86_64-unknown-linux-gnu:x86-64-v3", "cuda-emulated:...", "nvptx64-nvidia-cuda:sm_90a"; part of every identity.
    std::string text() const;
    bool operator==(const Target&) const = default;
};

/// The inverse of Target::text and Target::full_text, also of texts by a version with other levels. Errors:
/// KVJIT_BAD_TARGET; the message is a clause.
Result<Target> parse_target(std::string_view text);

/// Targets that may serve a request, best first; at least one, all of one backend.
using TargetList = std::vector<Target>;

inline constexpr std::string_view kCpuTriple = "x86_64-unknown-linux-gnu";

/// Parses a level, with or without further features (x86.h), or a CUDA architecture whose number is known
/// (architecture.h) or in `further`. Errors: KVJIT_BAD_TARGET.
///
/// A CPU's name may end with "+amx-emulated", where it has AVX2 and FMA: kernels made for AMX then run without it, with
/// the same results and far more slowly, for tests.
Result<Target> named_target(std::string_view name, std::span<const int> further = {});

Target cpu_target(const X86Features& features);

/// `target`, then those whose code runs wherever `target`'s code does, from the most to the fewest features: of a CPU
/// with AMX what it is without, since a process may be refused AMX, and levels; older architectures of a GPU's
/// generation. A bundle may have code of any of them for a machine.
TargetList with_lesser(const Target& target);

/// CUDA kernels on `machine`, a CPU target.
Target emulated_target(const Target& machine);

/// CUDA: shared memory that one block may have, in bytes.
int max_shared_bytes(const Target& target);

}  // namespace kvjit::gen
