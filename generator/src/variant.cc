#include "generator/variant.h"

#include <algorithm>
#include <array>

namespace kvjit::gen {
namespace {

// ---- What serves what
// ------------------------------------------------------------------------------------------------

constexpr int kMaxCudaHeadDim = 256;

/// What specs can say and no variant can do yet.
struct Lack {
    std::string_view field;
    bool (*asked)(const KernelSpec&);
};
constexpr Lack kLacks[] = {
    {"value_head_dim", [](const KernelSpec& s) { return s.value_head_dim != 0 && s.value_head_dim != s.head_dim; }},
    {"cache_mode",
     [](const KernelSpec& s) { return s.cache_mode == KVJIT_BLOCK_POINTERS || s.cache_mode == KVJIT_SEQUENCE_TABLE; }},
    {"has_window", [](const KernelSpec& s) { return s.has_window != 0; }},
    {"has_soft_cap", [](const KernelSpec& s) { return s.has_soft_cap != 0; }},
    {"has_sinks", [](const KernelSpec& s) { return s.has_sinks != 0; }},
    {"layout", [](const KernelSpec& s) { return !layout_axes(s).contains('2') || !layout_axes(s).ends_with('D'); }},
};

Result<void> serves_all(const KernelSpec& spec, const Target&) {
    for (const Lack& lack : kLacks) {
        if (!lack.asked(spec)) continue;
        const Field& field = *std::ranges::find(spec_fields(), lack.field, &Field::name);
        const std::string value = field.print(spec);
        return fail(KVJIT_BAD_SPEC, std::string(field.name),
                    std::string(field.name) + " is " + value + "; this version of kvjit has no kernels for it yet");
    }
    return {};
}

Result<void> serves_cuda(const KernelSpec& spec, const Target& target) {
    if (auto all = serves_all(spec, target); !all) return all;
    if (spec.head_dim <= kMaxCudaHeadDim) return {};
    return fail(KVJIT_BAD_SPEC, "head_dim",
                "head_dim is " + std::to_string(spec.head_dim) + "; CUDA kernels take at most " +
                    std::to_string(kMaxCudaHeadDim),
                spec.head_dim, kMaxCudaHeadDim);
}

/// Products of float16: what is narrower becomes float16 exactly enough, what is wider doesn't.
Result<void> serves_f16(std::string_view field, kvjit_dtype type) {
    if (type != KVJIT_F32) return {};
    return fail(KVJIT_BAD_SPEC, std::string(field), std::string(field) + " is f32; products on tensor cores are of f16",
                type, KVJIT_F16);
}

Result<void> serves_mma(const KernelSpec& spec, const Target& target) {
    if (auto cuda = serves_cuda(spec, target); !cuda) return cuda;
    if (auto t1 = serves_f16("t1", static_cast<kvjit_dtype>(spec.t1)); !t1) return t1;
    return has_cache(spec) ? serves_f16("t2", cache_type(spec)) : Result<void>{};
}

Result<void> serves_mma_decode(const KernelSpec& spec, const Target& target) {
    if (spec.group >= 2) return serves_mma(spec, target);
    return fail(KVJIT_BAD_SPEC, "group", "group is 1; one query head for each kv head makes no matrix of a decode",
                spec.group, 2);
}

// ---- Shapes of launches
// ----------------------------------------------------------------------------------------------

/// The spec as the templates' shapes see it.
CacheFormat cache_format(const KernelSpec& spec) {
    const bool cached = has_cache(spec);
    const auto t1 = static_cast<kvjit_dtype>(spec.t1);
    const bool quantised = cached && spec.quant_bit != 0;
    const kvjit_dtype t2 = cached ? cache_type(spec) : t1;
    return {.head_dim = spec.head_dim,
            .t1_bytes = static_cast<int>(dtype_bytes(t1)),
            .t2_bits = quantised ? spec.quant_bit : static_cast<int>(dtype_bytes(t2)) * 8,
            .scale_bytes = quantised ? static_cast<int>(dtype_bytes(scale_type(spec))) : 0,
            .quant_group = quantised ? spec.quant_group : spec.head_dim};
}

LaunchShape by_item(const KernelSpec&, const Target&) {
    return {};
}

LaunchShape by_token(const KernelSpec&, const Target&) {
    return kTokenShape;
}

LaunchShape by_check(const KernelSpec&, const Target&) {
    return kCheckShape;
}

template <bool kDecode>
LaunchShape by_dot(const KernelSpec& spec, const Target&) {
    return dot_shape(kDecode, cache_format(spec));
}

LaunchShape by_mma_decode(const KernelSpec& spec, const Target& target) {
    return mma_decode_shape(cache_format(spec), max_shared_bytes(target));
}

LaunchShape by_mma_prefill(const KernelSpec& spec, const Target& target) {
    return mma_prefill_shape(cache_format(spec), max_shared_bytes(target));
}

// ---- The lists
// -------------------------------------------------------------------------------------------------------

constexpr Variant kCpuStore[] = {{"simd", "cpu/store.cc", 1, serves_all, by_item}};
constexpr Variant kCpuLoad[] = {{"simd", "cpu/load.cc", 1, serves_all, by_item}};
constexpr Variant kCpuDecode[] = {{"simd", "cpu/attend_decode.cc", 1, serves_all, by_item}};
constexpr Variant kCpuPrefill[] = {{"simd", "cpu/attend_prefill.cc", 1, serves_all, by_item}};
constexpr Variant kCpuMerge[] = {{"simd", "cpu/merge.cc", 1, serves_all, by_item}};

constexpr Variant kCudaStore[] = {{"warps", "cuda/store.cu", 1, serves_cuda, by_token}};
constexpr Variant kCudaLoad[] = {{"warps", "cuda/load.cu", 1, serves_cuda, by_token}};
constexpr Variant kCudaDecode[] = {{"mma", "cuda/attend_decode_mma.cu", 1, serves_mma_decode, by_mma_decode},
                                   {"dot", "cuda/attend_decode_dot.cu", 1, serves_cuda, by_dot<true>}};
constexpr Variant kCudaPrefill[] = {{"mma", "cuda/attend_prefill_mma.cu", 1, serves_mma, by_mma_prefill},
                                    {"dot", "cuda/attend_prefill_dot.cu", 1, serves_cuda, by_dot<false>}};
constexpr Variant kCudaMerge[] = {{"warps", "cuda/merge.cu", 1, serves_cuda, by_token}};
constexpr Variant kCudaCheck[] = {{"warps", "cuda/check.cu", 2, serves_cuda, by_check}};

/// In the order of ProgramKind.
using Lists = std::array<std::span<const Variant>, kProgramKinds>;
constexpr Lists kCpu = {{kCpuStore, kCpuLoad, kCpuDecode, kCpuPrefill, kCpuMerge, {}}};
constexpr Lists kCuda = {{kCudaStore, kCudaLoad, kCudaDecode, kCudaPrefill, kCudaMerge, kCudaCheck}};

}  // namespace

std::span<const Variant> variants(ProgramKind kind, Backend backend) {
    return (backend == Backend::kCpu ? kCpu : kCuda)[static_cast<std::size_t>(kind)];
}

Result<const Variant*> choose_variant(ProgramKind kind, const KernelSpec& spec, const Target& target) {
    Result<const Variant*> chosen = nullptr;
    for (const Variant& variant : variants(kind, target.backend)) {
        const Result<void> serves = variant.serves(spec, target);
        if (serves) return &variant;
        chosen = std::unexpected(serves.error());
    }
    return chosen;
}

std::string explain_variants(ProgramKind kind, const KernelSpec& spec, const Target& target) {
    std::string text;
    bool found = false;
    for (const Variant& variant : variants(kind, target.backend)) {
        text.append(variant.name).append(" (").append(variant.template_path).append(") ");
        const Result<void> serves = found ? Result<void>{} : variant.serves(spec, target);
        text += found ? "is not asked" : serves ? "serves" : "declines: " + serves.error().message;
        text += '\n';
        found = found || serves.has_value();
    }
    return text;
}

}  // namespace kvjit::gen
