#include "targets.h"

#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "check/fault.h"
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
gen::Result<gen::Target> emulation(bool wgmma) {
#ifdef KVJIT_CPU_JIT
    gen::Target target = gen::emulated_target(host_target());
    target.wgmma = wgmma;
    return target;
#else
    return gen::fail(KVJIT_BAD_TARGET, "target",
                     std::string("target is \"cuda-emulated") + (wgmma ? "+wgmma" : "") +
                         "\"; the emulation needs the CPU compiler, which this build of kvjit "
                         "lacks (KVJIT_CPU_JIT=OFF): name a GPU, as cuda, or an architecture, as sm_90a");
#endif
}

/// The ordinal in "cuda:N" and "cuda"; nullopt for other names.
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
    if (name == "cuda-emulated" || name == "cuda-emulated+wgmma") return alone(emulation(name.ends_with("+wgmma")));
    const std::optional<int> ordinal = gpu_ordinal(name);
    if (!ordinal) return alone(gen::named_target(name));
    const gen::Result<gen::Target> gpu = gpu_target(*ordinal);
    if (!gpu) return std::unexpected(gpu.error());
    return gen::with_lesser(*gpu);
}

/// The features of this level, counted from 1, that the levels before it lack.
std::string level_help(int level) {
    std::string features;
    for (const gen::X86Feature& feature : gen::x86_features()) {
        if (feature.level == level) features.append(features.empty() ? "" : " ").append(feature.name);
    }
    const std::string before = level > 1 ? text("all of ", gen::x86_levels()[level - 2], ", and ") : "";
    return "x86-64 CPUs with " + before + features;
}

/// "" where CUDA has always called it so.
std::string renamed_help(const gen::KnownArchitecture& known, char letter) {
    if (known.renamed_by == 0) return "";
    return text(", from ", gen::cuda_version_text(known.renamed_by), " on only under the name ",
                gen::Architecture{known.new_number, letter}.name());
}

std::string architecture_help(const gen::KnownArchitecture& known, char letter) {
    const char* runs = letter == 'a' ? ", for it alone" : letter == 'f' ? ", for it and later ones of its family" : "";
    return text("NVIDIA GPUs of compute capability ", known.number / 10, ".", known.number % 10, runs, "; CUDA ",
                gen::cuda_version_text(known.cuda), " and newer compile for it", renamed_help(known, letter));
}

/// Targets by name.
struct Interned {
    std::mutex mutex;
    std::map<std::string, const gen::TargetList, std::less<>> targets;
};

}  // namespace

std::vector<TargetRow> target_rows() {
    std::vector<TargetRow> rows;
#ifdef KVJIT_CPU_JIT
    rows.push_back({"host", "this machine's CPU"});
#endif
    for (int level = 1; level <= std::ssize(gen::x86_levels()); ++level) {
        rows.push_back({std::string(gen::x86_levels()[level - 1]), level_help(level)});
    }
    rows.push_back({"cuda", "this machine's GPU 0; cuda:N is GPU N"});
    for (const gen::KnownArchitecture& known : gen::known_architectures()) {
        for (const char letter : {'\0', 'a', 'f'}) {
            const std::string name = gen::Architecture{known.number, letter}.name();
            if (!gen::named_architecture(name, {})) continue;
            rows.push_back({name, architecture_help(known, letter)});
        }
    }
#ifdef KVJIT_CPU_JIT
    rows.push_back({"cuda-emulated", "CUDA kernels on this machine's CPU, slow and checked"});
#endif
    return rows;
}

gen::Result<const gen::TargetList*> find_targets(std::string_view name) {
    if (name == "host") {  // every kernel request may do this: without a lock
        static const auto& machine = *new const gen::Result<gen::TargetList>(host());
        if (!machine) return std::unexpected(machine.error());
        return &*machine;
    }
    static auto& interned = *new Interned;
    const std::lock_guard lock(interned.mutex);
    if (const auto it = interned.targets.find(name); it != interned.targets.end()) return &it->second;
    gen::Result<gen::TargetList> made = make_targets(name);
    if (!made) return std::unexpected(made.error());
    return &interned.targets.emplace(name, *std::move(made)).first->second;
}

}  // namespace kvjit::rt
