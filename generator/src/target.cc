#include "generator/target.h"

#include <algorithm>

#include "generator/architecture.h"

namespace kvjit::gen {
namespace {

constexpr std::string_view kTriple = "x86_64-unknown-linux-gnu";

constexpr X86Feature kFeatures[] = {
    {"cmov", 1},
    {"cx8", 1},
    {"fxsr", 1},
    {"mmx", 1},
    {"sse", 1},
    {"sse2", 1},
    {"crc32", 2},
    {"cx16", 2},
    {"popcnt", 2},
    {"sahf", 2},
    {"sse3", 2},
    {"sse4.1", 2},
    {"sse4.2", 2},
    {"ssse3", 2},
    {"avx", 3},
    {"avx2", 3},
    {"bmi", 3},
    {"bmi2", 3},
    {"f16c", 3},
    {"fma", 3},
    {"lzcnt", 3},
    {"movbe", 3},
    {"xsave", 3},
    {"avx512bw", 4},
    {"avx512cd", 4},
    {"avx512dq", 4},
    {"avx512f", 4},
    {"avx512vl", 4},
    {"adx", 0},
    {"aes", 0},
    {"amx-bf16", 0},
    {"amx-fp16", 0},
    {"amx-int8", 0},
    {"amx-tile", 0},
    {"avx512bf16", 0},
    {"avx512bitalg", 0},
    {"avx512fp16", 0},
    {"avx512ifma", 0},
    {"avx512vbmi", 0},
    {"avx512vbmi2", 0},
    {"avx512vnni", 0},
    {"avx512vp2intersect", 0},
    {"avx512vpopcntdq", 0},
    {"avxifma", 0},
    {"avxneconvert", 0},
    {"avxvnni", 0},
    {"avxvnniint16", 0},
    {"avxvnniint8", 0},
    {"fma4", 0},
    {"gfni", 0},
    {"pclmul", 0},
    {"prfchw", 0},
    {"rdrnd", 0},
    {"rdseed", 0},
    {"sha", 0},
    {"sha512", 0},
    {"sse4a", 0},
    {"tbm", 0},
    {"vaes", 0},
    {"vpclmulqdq", 0},
    {"xop", 0},
};

constexpr std::string_view kCudaTriple = "nvptx64-nvidia-cuda";

constexpr std::string_view kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

}  // namespace

std::span<const X86Feature> x86_features() {
    return kFeatures;
}

bool Target::has(std::string_view feature) const {
    return std::ranges::any_of(features, [&](const std::string& signed_name) {
        return signed_name.front() == '+' && std::string_view(signed_name).substr(1) == feature;
    });
}

int Target::vector_bytes() const {
    const bool wide = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
    return wide ? 64 : has("avx2") ? 32 : 16;
}

std::string Target::text() const {
    std::string out = (backend == Backend::kCudaEmulated ? "cuda-emulated:" : "") + triple + ":" + cpu;
    char separator = ':';
    for (const std::string& feature : features) {
        out += separator + feature;
        separator = ',';
    }
    return out;
}

Result<Target> named_target(std::string_view name, std::span<const int> further) {
    if (name.starts_with("sm_")) {
        if (auto known = check_architecture(name, further); !known) return std::unexpected(known.error());
        return Target{Backend::kCuda, std::string(kCudaTriple), std::string(name), {}, 0};
    }
    const auto it = std::ranges::find(kLevels, name);
    if (it == std::end(kLevels)) {
        return fail(KVJIT_BAD_TARGET, "target",
                    "target is \"" + std::string(name) +
                        "\"; it takes host, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, cuda, cuda:N, sm_80 and newer, or "
                        "cuda-emulated");
    }
    const auto level = static_cast<int>(it - std::begin(kLevels)) + 1;
    Target target{Backend::kCpu, std::string(kTriple), std::string(name), {}, 0};
    for (const X86Feature& feature : kFeatures) {
        const bool present = feature.level != 0 && feature.level <= level;
        target.features.push_back((present ? "+" : "-") + std::string(feature.name));
    }
    return target;
}

Target emulated_target(const Target& machine) {
    Target target = machine;
    target.backend = Backend::kCudaEmulated;
    return target;
}

bool runs_on(const Target& target, int major, int minor) {
    return runs_code(major * 10 + minor, architecture_of(target.cpu));
}

int max_shared_bytes(const Target& target) {
    // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". What an emulated kernel may have
    // is what every GPU has.
    const int number = architecture_of(target.cpu).number;
    if (number >= 90 && number < 120) return 227 * 1024;
    if (number == 80 || number == 87) return 163 * 1024;
    return 99 * 1024;
}

std::string missing_feature(const Target& program, const Target& machine) {
    for (const std::string& feature : program.features) {
        const std::string_view name = std::string_view(feature).substr(1);
        if (feature.front() == '+' && !machine.has(name)) return std::string(name);
    }
    return {};
}

}  // namespace kvjit::gen
