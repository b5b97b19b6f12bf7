#include <algorithm>
#include <bit>
#include <concepts>
#include <optional>

#include "generator/decode_tokens.h"
#include "generator/operator.h"
#include "generator/program.h"
#include "generator/score_rules.h"

namespace kvjit::gen {
namespace {

// ---- What serves what ----------------------------------------------------------------------------------------------

constexpr int kMaxCudaHeadDim = 256;

/// Refuses what specs can express but no variant supports yet. `side`: the prefix of the cache's fields, "to_" for a
/// Relayout's destination.
Result<void> serves_cache(const KernelSpec& spec, std::string_view side) {
    if (spec.value_head_dim == 0 || spec.value_head_dim == spec.head_dim) return {};
    const std::string name = std::string(side) + "value_head_dim";
    return fail(
        KVJIT_BAD_SPEC, name,
        name + " is " + std::to_string(spec.value_head_dim) + "; this version of kvjit has no kernels for it yet",
        spec.value_head_dim, spec.head_dim);
}

Result<void> serves_all(const KernelSpec& spec, const Target&) {
    if (auto source = serves_cache(source_of(spec), ""); !source) return source;
    return is_relayout(spec) ? serves_cache(destination_of(spec), "to_") : Result<void>{};
}

Result<void> serves_cuda(const KernelSpec& spec, const Target& target) {
    if (auto all = serves_all(spec, target); !all) return all;
    if (spec.head_dim <= kMaxCudaHeadDim) return {};
    return fail(KVJIT_BAD_SPEC, "head_dim",
                "head_dim is " + std::to_string(spec.head_dim) + "; CUDA kernels take at most " +
                    std::to_string(kMaxCudaHeadDim),
                spec.head_dim, kMaxCudaHeadDim);
}

bool has_cuts(const KernelSpec& spec, int part) {
    return has_cache(spec) && cut_of(spec, part) != whole(spec);
}

/// The same axes, none of them split and D last: "NHTD" of "NHDTd8".
std::string without_cuts(std::string_view layout) {
    std::string order(axes_of(layout).order());
    std::erase_if(order, [](char axis) { return axis == 'D' || axis == 'd' || axis == 't'; });
    return order + "D";
}

/// A layout that splits rows or pages: the cache's, or the values' alone.
struct CutLayout {
    std::string field, axes;
    Cut cut;

    std::unexpected<Error> refuse(std::string_view says) const {
        return fail(KVJIT_BAD_SPEC, field, field + " is " + axes + "; " + std::string(says));
    }
};
std::optional<CutLayout> cut_layout(const KernelSpec& spec) {
    if (has_cuts(spec, 0)) return CutLayout{"layout", std::string(layout_axes(spec)), cut_of(spec, 0)};
    if (has_cuts(spec, 1)) return CutLayout{"value_layout", std::string(value_axes(spec)), cut_of(spec, 1)};
    return std::nullopt;
}

/// Supports only rows and pages that are not split.
Result<void> serves_whole(const KernelSpec& spec, const Target& target) {
    if (auto all = serves_all(spec, target); !all) return all;
    const std::optional<CutLayout> layout = cut_layout(spec);
    if (layout) return layout->refuse("it takes rows and pages in one piece");
    return {};
}

/// The same for both caches of a Relayout.
Result<void> serves_relayout(const KernelSpec& spec, const Target& target) {
    if (auto source = serves_whole(source_of(spec), target); !source) return source;
    const std::optional<CutLayout> layout = cut_layout(destination_of(spec));
    if (!layout) return serves_all(spec, target);
    return CutLayout{"to_" + layout->field, layout->axes, layout->cut}.refuse("it takes rows and pages in one piece");
}

Result<void> serves_relayout_cuda(const KernelSpec& spec, const Target& target) {
    if (auto cuda = serves_cuda(spec, target); !cuda) return cuda;
    return serves_relayout(spec, target);
}

Result<void> serves_whole_cuda(const KernelSpec& spec, const Target& target) {
    if (auto cuda = serves_cuda(spec, target); !cuda) return cuda;
    return serves_whole(spec, target);
}

Result<void> serves_attention(const KernelSpec& spec, const Target& target) {
    if (auto all = serves_all(spec, target); !all) return all;
    const std::optional<CutLayout> layout = cut_layout(spec);
    if (!layout) return {};
    const bool rows = layout->cut.elements != spec.head_dim;
    return layout->refuse("attention needs " +
                          std::string(rows ? "rows whose elements are neighbours" : "tokens of a page in one piece") +
                          "; relayout the cache to " + layout->field + "=" + without_cuts(layout->axes) +
                          ", say (op Relayout)");
}

Result<void> has_tiles(const Target& target, std::string_view feature) {
    if (target.multiplies_tiles(feature)) return {};
    const std::string lacks = target.has(feature) ? "the AVX-512 that goes with it" : std::string(feature);
    return fail(KVJIT_BAD_SPEC, "target", "target is " + target.name() + ", which lacks " + lacks);
}

/// AMX multiplies bfloat16: queries of 16 bits, with keys and values of 16 bits or of codes.
Result<void> serves_amx(const KernelSpec& spec, const Target& target) {
    if (auto attention = serves_attention(spec, target); !attention) return attention;
    if (auto tiles = has_tiles(target, "amx-bf16"); !tiles) return tiles;
    const auto refuse = [](const std::string& name, int dtype) {
        const std::string type(dtype_name(static_cast<kvjit_dtype>(dtype)));
        return fail(KVJIT_BAD_SPEC, name, name + " is " + type + "; AMX multiplies what is f16, bf16 or quantised",
                    dtype, KVJIT_BF16);
    };
    if (spec.t1 == KVJIT_F32) return refuse("t1", spec.t1);
    const bool wide = has_cache(spec) && spec.quant_bit == 0 && cache_type(spec) == KVJIT_F32;
    if (wide) return refuse("t2", cache_type(spec));
    return {};
}

/// Decode by AMX takes queries, keys and values as they lie in memory, and reads one kv head of a cache after the
/// other.
Result<void> serves_amx_decode(const KernelSpec& spec, const Target& target) {
    if (auto amx = serves_amx(spec, target); !amx) return amx;
    const auto refuse = [](const std::string& name, int dtype) {
        return fail(
            KVJIT_BAD_SPEC, name,
            name + " is " + std::string(dtype_name(static_cast<kvjit_dtype>(dtype))) + "; decode by AMX takes bf16",
            dtype, KVJIT_BF16);
    };
    if (spec.t1 != KVJIT_BF16) return refuse("t1", spec.t1);
    if (!has_cache(spec))
        return fail(KVJIT_BAD_SPEC, "op", "op has no cache; decode by AMX reads one head after the other from one");
    if (spec.quant_bit != 0)
        return fail(KVJIT_BAD_SPEC, "quant_bit",
                    "quant_bit is " + std::to_string(spec.quant_bit) + "; its products of bfloat16 dequantise nothing",
                    spec.quant_bit, 0);
    if (cache_type(spec) != KVJIT_BF16) return refuse("t2", cache_type(spec));
    constexpr int kTileElements = 32;
    if (spec.head_dim % kTileElements != 0)
        return fail(KVJIT_BAD_SPEC, "head_dim",
                    "head_dim is " + std::to_string(spec.head_dim) + "; decode by AMX takes multiples of " +
                        std::to_string(kTileElements),
                    spec.head_dim, kTileElements);
    const auto neighbours = [](std::string_view field, std::string_view axes) -> Result<void> {
        if (axes.find('H') < axes.find('T')) return {};
        return fail(KVJIT_BAD_SPEC, std::string(field),
                    std::string(field) + " is " + std::string(axes) +
                        ", in which a token's heads are neighbours; decode by AMX reads one head after the other");
    };
    if (auto keys = neighbours("layout", layout_axes(spec)); !keys) return keys;
    return neighbours("value_layout", value_axes(spec));
}

/// Products of bytes are of the codes of quantised keys and values, 32 of which share a scale. Where fewer do, what
/// each scale costs outweighs the products.
Result<void> serves_bytes(const KernelSpec& spec) {
    const int bits = has_cache(spec) ? spec.quant_bit : 0;
    if (bits == 0) return fail(KVJIT_BAD_SPEC, "quant_bit", "quant_bit is 0; products of bytes are of codes", 0, 8);
    const auto multiple = [](std::string_view name, int is, int of) -> Result<void> {
        if (is % of == 0) return {};
        return fail(KVJIT_BAD_SPEC, std::string(name),
                    std::string(name) + " is " + std::to_string(is) + "; products of bytes take multiples of " +
                        std::to_string(of),
                    is, of);
    };
    if (auto whole = multiple("head_dim", spec.head_dim, 256 / bits); !whole) return whole;
    return multiple("quant_group", spec.quant_group, 32);
}

/// AMX multiplies bytes of up to 16 rows, which are three for each query, in the time of one: fewer queries leave most
/// of a tile empty.
Result<void> serves_amx_int8(const KernelSpec& spec, const Target& target) {
    if (auto attention = serves_attention(spec, target); !attention) return attention;
    if (auto tiles = has_tiles(target, "amx-int8"); !tiles) return tiles;
    constexpr int kLeastGroup = 3;
    if (spec.group < kLeastGroup)
        return fail(KVJIT_BAD_SPEC, "group",
                    "group is " + std::to_string(spec.group) + "; fewer than " + std::to_string(kLeastGroup) +
                        " queries fill too little of a tile",
                    spec.group, kLeastGroup);
    return serves_bytes(spec);
}

Result<void> serves_vnni(const KernelSpec& spec, const Target& target) {
    if (auto attention = serves_attention(spec, target); !attention) return attention;
    for (const std::string_view feature : {"avx512vnni", "avx512vbmi"}) {
        if (target.vector_bytes() < 64 || !target.has(feature))
            return fail(KVJIT_BAD_SPEC, "target",
                        "target is " + target.name() + ", which lacks " + std::string(feature));
    }
    if (auto bytes = serves_bytes(spec); !bytes) return bytes;
    if (spec.quant_bit == 4 && spec.t1 == KVJIT_BF16 && target.multiplies_bfloat16())
        return fail(KVJIT_BAD_SPEC, "t1", "t1 is bf16; products of bfloat16 with int4 codes take less time there",
                    spec.t1, KVJIT_F16);
    return {};
}

Result<void> serves_dot(const KernelSpec& spec, const Target& target) {
    if (auto cuda = serves_cuda(spec, target); !cuda) return cuda;
    return serves_attention(spec, target);
}

/// Queries of a type that tensor cores multiply, with keys and values of the same type, or of codes that become it.
Result<void> serves_mma(const KernelSpec& spec, const Target& target) {
    if (auto dot = serves_dot(spec, target); !dot) return dot;
    const std::string t1(dtype_name(static_cast<kvjit_dtype>(spec.t1)));
    if (!element_type(spec.t1).multiplies)
        return fail(KVJIT_BAD_SPEC, "t1", "t1 is " + t1 + "; products on tensor cores are of f16 or bf16", spec.t1,
                    KVJIT_F16);
    if (!has_cache(spec) || spec.quant_bit != 0 || cache_type(spec) == spec.t1) return {};
    return fail(
        KVJIT_BAD_SPEC, "t2",
        "t2 is " + std::string(dtype_name(cache_type(spec))) + "; products on tensor cores are of one type, t1's " + t1,
        cache_type(spec), spec.t1);
}

/// Hopper's products of warpgroups.
Result<void> serves_wgmma(const KernelSpec& spec, const Target& target) {
    if (auto mma = serves_mma(spec, target); !mma) return mma;
    if (!target.multiplies_by_warpgroups())
        return fail(KVJIT_BAD_SPEC, "target",
                    "target is " + target.name() + "; products of warpgroups are code for sm_90a alone");
    if (has_cache(spec) && spec.quant_bit != 0)
        return fail(KVJIT_BAD_SPEC, "quant_bit",
                    "quant_bit is " + std::to_string(spec.quant_bit) + "; warpgroups multiply no dequantised rows yet",
                    spec.quant_bit, 0);
    if (spec.head_dim % 64 != 0)
        return fail(KVJIT_BAD_SPEC, "head_dim",
                    "head_dim is " + std::to_string(spec.head_dim) + "; warpgroups take multiples of 64", spec.head_dim,
                    64);
    if (spec.attn_mask != 0)
        return fail(KVJIT_BAD_SPEC, "attn_mask",
                    "attn_mask is " + std::to_string(spec.attn_mask) +
                        "; values of keys that a mask hides would reach products of warpgroups",
                    spec.attn_mask, 0);
    return {};
}

// ---- Shapes of launches --------------------------------------------------------------------------------------------

LaunchShape by_item(const KernelSpec&, const Target&) {
    return {};
}

LaunchShape by_token(const KernelSpec&, const Target&) {
    return kTokenShape;
}

LaunchShape by_row(const KernelSpec& spec, const Target&) {
    return row_shape(spec.head_dim);
}

LaunchShape by_check(const KernelSpec&, const Target&) {
    return kCheckShape;
}

template <bool kDecode>
LaunchShape by_dot(const KernelSpec& spec, const Target&) {
    return dot_shape(kDecode, cache_format(spec));
}

LaunchShape by_mma_decode(const KernelSpec& spec, const Target& target) {
    return mma_decode_shape(cache_format(spec), spec.group, max_shared_bytes(target));
}

LaunchShape by_mma_prefill(const KernelSpec& spec, const Target& target) {
    return mma_prefill_shape(cache_format(spec), max_shared_bytes(target));
}

LaunchShape by_wgmma_prefill(const KernelSpec& spec, const Target&) {
    return wgmma_prefill_shape(cache_format(spec));
}

// ---- Constants ------------------------------------------------------------------------------------------------------

Constant type(std::string name, std::string value) {
    return {"using", std::move(name), std::move(value)};
}
Constant number(std::string name, int value) {
    return {"int", std::move(name), std::to_string(value)};
}
Constant flag(std::string name, bool value) {
    return {"bool", std::move(name), value ? "true" : "false"};
}

std::string storage(std::int32_t dtype) {
    return std::string(element_type(dtype).storage);
}

kvjit_dtype input_type(const KernelSpec& spec) {
    return static_cast<kvjit_dtype>(spec.t1);
}

/// Type of the table's entries; packed keys and values have kvstarts for a table.
std::string index_storage(const KernelSpec& spec) {
    return storage(has_cache(spec) ? spec.index_type : spec.starts_type);
}

/// Constants of a cache's rows. `prefix`: "To" for a Relayout's destination.
std::vector<Constant> row_constants(const KernelSpec& spec, const std::string& prefix) {
    const bool quantised = has_cache(spec) && spec.quant_bit != 0;
    return {type(prefix + "T2", storage(has_cache(spec) ? cache_type(spec) : input_type(spec))),
            type(prefix + "T3", quantised ? storage(scale_type(spec)) : "float"),
            number("k" + prefix + "QuantBit", quantised ? spec.quant_bit : 0),
            number("k" + prefix + "QuantGroup", quantised ? spec.quant_group : spec.head_dim)};
}

/// Constants of the pieces into which the layout splits rows and pages.
std::vector<Constant> cut_constants(const KernelSpec& spec, const std::string& prefix) {
    const Cut key = cut_of(spec, 0), value = cut_of(spec, 1);
    return {number("k" + prefix + "KeyPiece", key.elements), number("k" + prefix + "ValuePiece", value.elements),
            number("k" + prefix + "KeyTokenPiece", key.tokens), number("k" + prefix + "ValueTokenPiece", value.tokens)};
}

std::vector<Constant> joined(std::vector<Constant> first, const std::vector<Constant>& then) {
    first.insert(first.end(), then.begin(), then.end());
    return first;
}

/// Constants of all programs that access keys and values. Two specs that agree here share their binaries, whatever
/// their layouts: strides are run-time values, also those of pages and blocks; only the order of traversal is code.
std::vector<Constant> cache_constants(const KernelSpec& spec, Backend) {
    return joined(
        joined({number("kHeadDim", spec.head_dim), type("T1", storage(input_type(spec)))}, row_constants(spec, "")),
        {
            number("kPageSize", static_cast<int>(page_tokens(spec))),
            flag("kAddresses", table_entries(spec) == abi::Entries::kAddresses),
            type("Index", index_storage(spec)),
            flag("kHeadInner", is_head_inner(spec)),
        });
}

/// The plan computes where tokens lie, so that one program serves all layouts and modes of both caches.
std::vector<Constant> relayout_constants(const KernelSpec& spec, Backend) {
    const KernelSpec source = source_of(spec), destination = destination_of(spec);
    std::vector<Constant> constants = joined(
        joined({number("kHeadDim", spec.head_dim), type("T1", storage(input_type(spec)))}, row_constants(source, "")),
        row_constants(destination, "To"));
    if (!cut_layout(source) && !cut_layout(destination)) return constants;
    return joined(constants, joined(cut_constants(source, ""), cut_constants(destination, "To")));
}

/// Constants of programs that only write and read rows, which may be split. Unsplit layouts have no constants for it.
std::vector<Constant> token_constants(const KernelSpec& spec, Backend backend) {
    std::vector<Constant> constants = cache_constants(spec, backend);
    if (!cut_layout(spec)) return constants;
    return joined(constants, cut_constants(spec, ""));
}

std::vector<Constant> attend_constants(const KernelSpec& spec, Backend backend) {
    std::vector<Constant> constants = cache_constants(spec, backend);
    constants.push_back(number("kGroup", spec.group));
    if (backend != Backend::kCpu) constants.push_back(number("kDecodeTokens", gpu_decode_tokens(spec)));
    constants.push_back(flag("kCausal", spec.is_causal || spec.is_alibi));
    for (const ScoreRule& rule : kScoreRules) {
        const std::string name(rule.constant);
        const std::int32_t value = spec.*rule.member;
        constants.push_back(rule.is_flag ? flag(name, value != 0) : number(name, value));
    }
    return constants;
}

/// The partials of an attention call are float32; those of op Merge are outputs of attention calls, of type T1.
std::vector<Constant> merge_constants(const KernelSpec& spec, Backend) {
    const std::string partial = !has_keys(spec) ? storage(input_type(spec)) : "float";
    return {number("kHeadDim", spec.head_dim), type("T1", storage(input_type(spec))), type("Partial", partial),
            flag("kSinks", spec.has_sinks)};
}

std::vector<Constant> check_constants(const KernelSpec& spec, Backend) {
    return {flag("kCached", has_cache(spec)), number("kEntries", static_cast<int>(table_entries(spec))),
            number("kPageSize", static_cast<int>(page_tokens(spec))), type("Index", index_storage(spec))};
}

// ---- The table ------------------------------------------------------------------------------------------------------

constexpr Variant kCpuStore[] = {{"simd", "cpu/store.cc", 1, serves_whole, by_item},
                                 {"cut", "cpu/store_cut.cc", 1, serves_all, by_item}};
constexpr Variant kCudaStore[] = {{"warps", "cuda/store.cu", 2, serves_whole_cuda, by_row},
                                  {"cut", "cuda/store_cut.cu", 2, serves_cuda, by_row}};

constexpr Variant kCpuLoad[] = {{"simd", "cpu/load.cc", 1, serves_whole, by_item},
                                {"cut", "cpu/load_cut.cc", 1, serves_all, by_item}};
constexpr Variant kCudaLoad[] = {{"warps", "cuda/load.cu", 2, serves_whole_cuda, by_row},
                                 {"cut", "cuda/load_cut.cu", 2, serves_cuda, by_row}};

constexpr Variant kCpuDecode[] = {{"amx", "cpu/attend_decode_amx.cc", 4, serves_amx_decode, by_item, true},
                                  {"amx-int8", "cpu/attend_decode_amx_int8.cc", 4, serves_amx_int8, by_item, true},
                                  {"vnni", "cpu/attend_decode_vnni.cc", 5, serves_vnni, by_item},
                                  {"simd", "cpu/attend_decode.cc", 7, serves_attention, by_item}};
constexpr Variant kCudaDecode[] = {{"mma", "cuda/attend_decode_mma.cu", 11, serves_mma, by_mma_decode},
                                   {"dot", "cuda/attend_decode_dot.cu", 6, serves_dot, by_dot<true>}};

constexpr Variant kCpuPrefill[] = {{"amx", "cpu/attend_prefill_amx.cc", 6, serves_amx, by_item, true},
                                   {"simd", "cpu/attend_prefill.cc", 8, serves_attention, by_item}};
constexpr Variant kCudaPrefill[] = {{"wgmma", "cuda/attend_prefill_wgmma.cu", 5, serves_wgmma, by_wgmma_prefill},
                                    {"mma", "cuda/attend_prefill_mma.cu", 9, serves_mma, by_mma_prefill},
                                    {"dot", "cuda/attend_prefill_dot.cu", 6, serves_dot, by_dot<false>}};

constexpr Variant kCpuMerge[] = {{"simd", "cpu/merge.cc", 1, serves_all, by_item}};
constexpr Variant kCudaMerge[] = {{"warps", "cuda/merge.cu", 3, serves_cuda, by_token}};

constexpr Variant kCudaCheck[] = {{"warps", "cuda/check.cu", 9, serves_cuda, by_check}};

constexpr Variant kCpuRelayout[] = {{"simd", "cpu/relayout.cc", 1, serves_relayout, by_item},
                                    {"cut", "cpu/relayout_cut.cc", 1, serves_all, by_item}};
constexpr Variant kCudaRelayout[] = {{"warps", "cuda/relayout.cu", 1, serves_relayout_cuda, by_token},
                                     {"cut", "cuda/relayout_cut.cu", 1, serves_cuda, by_token}};

constexpr std::uint32_t ops(std::same_as<kvjit_op> auto... op) {
    return ((1U << op) | ...);
}
constexpr std::uint32_t kLoading = ops(KVJIT_OP_KEY_VALUE_CACHE);
constexpr std::uint32_t kStoring = ops(KVJIT_OP_KEY_VALUE_CACHE, KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION);
constexpr std::uint32_t kAttending = ops(KVJIT_OP_MULTI_HEAD_ATTENTION, KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION);
constexpr std::uint32_t kMerging = ops(KVJIT_OP_MERGE);
constexpr std::uint32_t kMoving = ops(KVJIT_OP_RELAYOUT);

/// In the order in which a call runs them. On CUDA, KVJIT_PROGRAM_CHECK checks index arrays, which the host can't read,
/// and attention merges its own splits.
constexpr ProgramInfo kPrograms[] = {
    {KVJIT_PROGRAM_CHECK, "check", "check", check_constants, {}, {kLoading | kStoring | kAttending, kCudaCheck}},
    {KVJIT_PROGRAM_STORE, "store", "store", token_constants, {kStoring, kCpuStore}, {kStoring, kCudaStore}},
    {KVJIT_PROGRAM_LOAD, "load", "load", token_constants, {kLoading, kCpuLoad}, {kLoading, kCudaLoad}},
    {KVJIT_PROGRAM_DECODE,
     "decode",
     "attend_decode",
     attend_constants,
     {kAttending, kCpuDecode},
     {kAttending, kCudaDecode}},
    {KVJIT_PROGRAM_PREFILL,
     "prefill",
     "attend_prefill",
     attend_constants,
     {kAttending, kCpuPrefill},
     {kAttending, kCudaPrefill}},
    {KVJIT_PROGRAM_MERGE,
     "merge",
     "merge",
     merge_constants,
     {kAttending | kMerging, kCpuMerge},
     {kMerging, kCudaMerge}},
    {KVJIT_PROGRAM_RELAYOUT,
     "relayout",
     "relayout",
     relayout_constants,
     {kMoving, kCpuRelayout},
     {kMoving, kCudaRelayout}},
};

/// Each program has one bit, without gaps, since ProgramInfo::place_of computes indices from them.
constexpr bool bits_are_whole() {
    std::uint32_t bits = 0;
    for (const ProgramInfo& info : kPrograms) bits |= std::has_single_bit(std::uint32_t{info.bit}) ? info.bit : 0;
    return bits == (1U << std::size(kPrograms)) - 1;
}
static_assert(bits_are_whole());

}  // namespace

CacheFormat cache_format(const KernelSpec& spec) {
    const bool cached = has_cache(spec);
    const auto t1 = static_cast<kvjit_dtype>(spec.t1);
    const bool quantised = cached && spec.quant_bit != 0;
    const kvjit_dtype t2 = cached ? cache_type(spec) : t1;
    return {.head_dim = spec.head_dim,
            .t2_bits = quantised ? spec.quant_bit : static_cast<int>(dtype_bytes(t2)) * 8,
            .scale_bytes = quantised ? static_cast<int>(dtype_bytes(scale_type(spec))) : 0,
            .quant_group = quantised ? spec.quant_group : spec.head_dim};
}

std::vector<Constant> target_constants(const Target& target) {
    if (target.backend != Backend::kCpu) return {number("kMaxSharedBytes", max_shared_bytes(target))};
    return {number("kVectorBytes", target.vector_bytes()),
            flag("kHasFma", target.has("fma")),
            flag("kHasF16c", target.has("f16c")),
            flag("kHasAvx2", target.has("avx2")),
            flag("kHasAvx512", target.vector_bytes() == 64),
            flag("kHasVnni", target.has("avx512vnni")),
            flag("kFastBfloat16", target.multiplies_bfloat16())};
}

std::span<const ProgramInfo> programs() {
    return kPrograms;
}

std::string_view label_of(std::string_view name) {
    const auto* info = std::ranges::find(kPrograms, name, &ProgramInfo::name);
    return info != std::end(kPrograms) ? info->label : name;
}

}  // namespace kvjit::gen
