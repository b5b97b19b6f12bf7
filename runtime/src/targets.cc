#include "targets.h"

#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "cuda/cuda_backend.h"
#ifdef KVJIT_CPU_JIT
#include "cpu/host.h"
#endif

namespace kvjit::rt {
namespace {

/// This machine's CPU.
gen::Result<gen::TargetList> host() {
#ifdef KVJIT_CPU_JIT
    return gen::with_lesser(host_target());
#else
    return gen::fail(KVJIT_BAD_TARGET, "target",
                     "this build of kvjit makes no CPU code (KVJIT_CPU_JIT=OFF): name a CUDA target");
#endif
}

/// CUDA kernels on this machine's CPU.
gen::Result<gen::Target> emulation() {
#ifdef KVJIT_CPU_JIT
    return gen::emulated_target(host_target());
#else
    return gen::fail(KVJIT_BAD_TARGET, "target",
                     "target is \"cuda-emulated\"; the emulation needs the CPU compiler, which this build of kvjit "
                     "lacks (KVJIT_CPU_JIT=OFF): name a GPU, as cuda, or an architecture, as sm_90a");
#endif
}

/// The ordinal in "cuda:N" and "cuda"; nothing for other names.
std::optional<int> gpu_ordinal(std::string_view name) {
    if (name == "cuda") return 0;
    if (!name.starts_with("cuda:")) return std::nullopt;
    name.remove_prefix(5);
    int ordinal = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ordinal);
    const bool whole = error == std::errc() && end == name.data() + name.size();
    return whole && ordinal >= 0 ? std::optional(ordinal) : std::nullopt;
}

gen::Result<gen::TargetList> alone(gen::Result<gen::Target> target) {
    if (!target) return std::unexpected(target.error());
    return gen::TargetList{*std::move(target)};
}

gen::Result<gen::TargetList> make_targets(std::string_view name) {
    if (name.starts_with("sm_")) return alone(architecture_target(name));
    if (name == "cuda-emulated") return alone(emulation());
    const std::optional<int> ordinal = gpu_ordinal(name);
    if (!ordinal) return alone(gen::named_target(name));
    const gen::Result<gen::Target> gpu = gpu_target(*ordinal);
    if (!gpu) return std::unexpected(gpu.error());
    return gen::with_lesser(*gpu);
}

}  // namespace

gen::Result<const gen::TargetList*> find_targets(std::string_view name) {
    if (name == "host") {  // asked for with each kernel: without a lock
        static const gen::Result<gen::TargetList> machine = host();
        if (!machine) return std::unexpected(machine.error());
        return &*machine;
    }
    static std::mutex mutex;
    static std::map<std::string, const gen::TargetList, std::less<>> targets;
    const std::lock_guard lock(mutex);
    if (const auto it = targets.find(name); it != targets.end()) return &it->second;
    gen::Result<gen::TargetList> made = make_targets(name);
    if (!made) return std::unexpected(made.error());
    return &targets.emplace(name, *std::move(made)).first->second;
}

}  // namespace kvjit::rt
