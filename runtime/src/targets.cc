#include "targets.h"

#include <charconv>
#include <map>
#include <memory>
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
gen::Result<const gen::Target*> host() {
#ifdef KVJIT_CPU_JIT
    return &host_target();
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

gen::Result<gen::Target> make_target(std::string_view name) {
    if (const std::optional<int> ordinal = gpu_ordinal(name)) return gpu_target(*ordinal);
    if (name.starts_with("sm_")) return architecture_target(name);
    return name == "cuda-emulated" ? emulation() : gen::named_target(name);
}

}  // namespace

gen::Result<const gen::Target*> find_target(std::string_view name) {
    static std::mutex mutex;
    static std::map<std::string, std::unique_ptr<const gen::Target>, std::less<>> targets;
    if (name == "host") return host();
    const std::lock_guard lock(mutex);
    if (const auto it = targets.find(name); it != targets.end()) return it->second.get();
    gen::Result<gen::Target> made = make_target(name);
    if (!made) return std::unexpected(made.error());
    const auto it = targets.emplace(name, std::make_unique<const gen::Target>(*std::move(made))).first;
    return it->second.get();
}

}  // namespace kvjit::rt
