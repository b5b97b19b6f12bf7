// An instruction set, resolved to plain values. Nothing here asks the machine: runtime/src/cpu/host.h does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/error.h"
#include "generator/spec.h"

namespace kvjit::gen {

/// Which templates a target's programs come from, and who compiles and runs them.
enum class Backend {
    kCpu,           // templates/cpu: Clang, this machine
    kCuda,          // templates/cuda: NVRTC, a GPU
    kCudaEmulated,  // templates/cuda: Clang, this machine, a fiber for each thread
};
inline constexpr int kBackends = 3;

struct Target {
    Backend backend = Backend::kCpu;
    std::string triple;  // "x86_64-unknown-linux-gnu", "nvptx64-nvidia-cuda"
    std::string cpu;     // what to tune for: "sapphirerapids", "x86-64-v3"; the architecture: "sm_90a"
    /// Every feature of kX86Features in its order, signed: "+avx2", "-avx512f". None for CUDA.
    std::vector<std::string> features;
    int device = 0;  // CUDA: which GPU runs the kernels, by its ordinal. Not in the text: code is the same

    bool has(std::string_view feature) const;
    /// Bytes of the widest vector that kernels use: 64, 32 or 16.
    int vector_bytes() const;
    /// "x86_64-unknown-linux-gnu:x86-64-v3:+avx,+avx2,-avx512f,..."; part of every identity.
    std::string text() const;
    bool operator==(const Target&) const = default;
};

/// Features that a target may have, LLVM 19's names, each with the x86-64 level (1..4) that implies it, 0 for none.
struct X86Feature {
    std::string_view name;
    int level;
};
std::span<const X86Feature> x86_features();

/// "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", or a CUDA architecture that is in the list of
/// architecture.h or has one of the `further` numbers. Errors: KVJIT_BAD_TARGET.
Result<Target> named_target(std::string_view name, std::span<const int> further = {});

/// CUDA kernels on `machine`, a CPU target.
Target emulated_target(const Target& machine);

/// CUDA: whether a GPU of this compute capability runs the target's code. See runs_code.
bool runs_on(const Target& target, int major, int minor);

/// CUDA: shared memory that one block may have, in bytes.
int max_shared_bytes(const Target& target);

/// The first feature that `program` has and `machine` lacks; empty if the machine can run it.
std::string missing_feature(const Target& program, const Target& machine);

}  // namespace kvjit::gen
