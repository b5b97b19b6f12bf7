#include "generator/target.h"

#include <algorithm>

namespace kvjit::gen {
namespace {

constexpr std::string_view kCudaTriple = "nvptx64-nvidia-cuda";
constexpr std::string_view kEmulated = "cuda-emulated:";
constexpr std::string_view kAmxEmulated = "+amx-emulated";
constexpr std::string_view kWgmma = "+wgmma";
constexpr Architecture kHopper = {90, 'a'};  // alone has wgmma

/// The text after `start` and a colon; nullopt where it begins otherwise.
std::optional<std::string_view> text_after(std::string_view start, std::string_view text) {
    const bool there = text.starts_with(start) && text.substr(start.size()).starts_with(':');
    return there ? std::optional(text.substr(start.size() + 1)) : std::nullopt;
}

/// Takes `ending` off the text's end; whether it was there.
bool take_ending(std::string_view& text, std::string_view ending) {
    const bool there = text.ends_with(ending);
    if (there) text.remove_suffix(ending.size());
    return there;
}

/// The same CPU without AMX.
Target without_tiles(const Target& target) {
    return cpu_target(consistent(target.features & ~*parse_mask("amx-tile")));
}

/// The inverse of Target::name for a CPU.
std::optional<Target> parse_cpu(std::string_view name) {
    const bool emulates_amx = take_ending(name, kAmxEmulated);
    const std::optional<X86Features> features = parse_features(name);
    if (!features) return std::nullopt;
    Target target = cpu_target(*features);
    target.emulates_amx = emulates_amx;
    const bool possible = !emulates_amx || (target.has("avx2") && target.has("fma"));
    return possible ? std::optional(target) : std::nullopt;
}

std::string level_list() {
    std::string text;
    for (const std::string_view level : x86_levels()) text.append(level).append(", ");
    return text;
}

/// Of a target's full_text without the ending "+wgmma".
std::optional<Target> parse_plain_target(std::string_view text) {
    if (const auto name = text_after(kCudaTriple, text)) {
        const Architecture architecture = architecture_of(*name);
        if (architecture.number > 0) return Target{Backend::kCuda, {}, architecture};
    }
    const bool emulated = text.starts_with(kEmulated);
    if (const auto name = text_after(kCpuTriple, text.substr(emulated ? kEmulated.size() : 0))) {
        const std::optional<Target> cpu = parse_cpu(*name);
        if (cpu && !emulated) return cpu;
        if (cpu && !cpu->emulates_amx) return emulated_target(*cpu);
    }
    return std::nullopt;
}

}  // namespace

int Target::vector_bytes() const {
    const bool wide = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
    return wide ? 64 : has("avx2") ? 32 : 16;
}

bool Target::multiplies_bfloat16() const {
    return vector_bytes() == 64 && has("avx512bf16") && is_amd(features);
}

bool Target::multiplies_tiles(std::string_view feature) const {
    return emulates_amx || (vector_bytes() == 64 && has(feature));
}

bool Target::multiplies_by_warpgroups() const {
    return wgmma || (backend == Backend::kCuda && architecture == kHopper);
}

std::string Target::name() const {
    return code_name() + std::string(wgmma ? kWgmma : "");
}

std::string Target::code_name() const {
    if (backend == Backend::kCuda) return architecture.name();
    return print_features(features).append(emulates_amx ? kAmxEmulated : "");
}

std::string Target::full_text() const {
    return text() + std::string(wgmma ? kWgmma : "");
}

std::string Target::text() const {
    const std::string_view triple = backend == Backend::kCuda ? kCudaTriple : kCpuTriple;
    return std::string(backend == Backend::kCudaEmulated ? kEmulated : "").append(triple) + ":" + code_name();
}

Result<Target> parse_target(std::string_view text) {
    std::string_view plain = text;
    const bool wgmma = take_ending(plain, kWgmma);
    std::optional<Target> target = parse_plain_target(plain);
    if (target && wgmma && target->backend != Backend::kCudaEmulated) target.reset();
    if (target) target->wgmma = wgmma;
    if (target) return *target;
    return fail(KVJIT_BAD_TARGET, "target",
                "\"" + std::string(text) + "\" is no target that this version of kvjit knows, as " +
                    std::string(kCpuTriple) + ":x86-64-v3 or " + std::string(kCudaTriple) + ":sm_90a");
}

Target cpu_target(const X86Features& features) {
    return {Backend::kCpu, features, {}};
}

Result<Target> named_target(std::string_view name, std::span<const int> further) {
    if (name.starts_with("sm_")) {
        const Result<Architecture> architecture = named_architecture(name, further);
        if (!architecture) return std::unexpected(architecture.error());
        return Target{Backend::kCuda, {}, *architecture};
    }
    if (const std::optional<Target> cpu = parse_cpu(name)) return *cpu;
    return fail(
        KVJIT_BAD_TARGET, "target",
        "target is \"" + std::string(name) + "\"; it takes host, " + level_list() +
            "one of these with further features that don't lack what they need (x86-64-v3+avxvnni, "
            "x86-64-v3+amx-emulated), cuda, cuda:N, a GPU's compute capability from sm_80 on (sm_90a is an H100's), or "
            "cuda-emulated; kvjit targets lists them");
}

TargetList with_lesser(const Target& target) {
    TargetList list = {target};
    const auto add = [&](Target lesser) {
        lesser.backend = target.backend;
        lesser.device = target.device;
        if (std::ranges::find(list, lesser) == list.end()) list.push_back(lesser);
    };
    if (target.backend == Backend::kCuda) {
        for (const Architecture& code : runnable_code(target.architecture)) add({target.backend, {}, code});
        return list;
    }
    if (target.has("amx-tile")) add(without_tiles(target));
    for (int level = static_cast<int>(x86_levels().size()); level > 0; --level) {
        const X86Features features = level_features(level);
        if ((features & ~target.features).none()) add(cpu_target(features));
    }
    return list;
}

Target emulated_target(const Target& machine) {
    Target target = machine;
    target.backend = Backend::kCudaEmulated;
    return target;
}

int max_shared_bytes(const Target& target) {
    // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". An emulated kernel may use what
    // every GPU has.
    const int number = target.architecture.number;
    if (number >= 90 && number < 120) return 227 * 1024;
    if (number == 80 || number == 87) return 163 * 1024;
    return 99 * 1024;
}

}  // namespace kvjit::gen
