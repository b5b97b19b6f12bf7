#include "generator/program.h"

#include <algorithm>
#include <array>

#include "common/abi.h"
#include "generator/identity.h"
#include "generator/operator.h"

namespace kvjit::gen {
namespace {

/// Query rows of a kv head (tokens times group) up to which dot products over keys that are read once beat packed
/// tiles. A GPU's decode has tiles of rows, too: as many tokens as one tile takes, or one token that takes several.
constexpr int kCpuDecodeRows = 16;

/// In the order of ProgramKind.
constexpr std::array<ProgramInfo, kProgramKinds> kInfos = {{
    {ProgramKind::kStore, "store", "kvjit_store", KVJIT_PROGRAM_STORE, "store"},
    {ProgramKind::kLoad, "load", "kvjit_load", KVJIT_PROGRAM_LOAD, "load"},
    {ProgramKind::kAttendDecode, "attend_decode", "kvjit_attend_decode", KVJIT_PROGRAM_DECODE, "decode"},
    {ProgramKind::kAttendPrefill, "attend_prefill", "kvjit_attend_prefill", KVJIT_PROGRAM_PREFILL, "prefill"},
    {ProgramKind::kMerge, "merge", "kvjit_merge", KVJIT_PROGRAM_MERGE, "merge"},
    {ProgramKind::kCheck, "check", "kvjit_check", KVJIT_PROGRAM_CHECK, "check"},
}};

/// In the order of the bits, too.
constexpr bool infos_are_whole() {
    int at = 0;
    for (const ProgramInfo& info : kInfos) {
        if (info.bit != 1 << at || static_cast<int>(info.kind) != at++) return false;
    }
    return true;
}
static_assert(infos_are_whole());

Constant type(std::string name, std::string value) {
    return {"using", std::move(name), std::move(value)};
}
Constant number(std::string name, int value) {
    return {"int", std::move(name), std::to_string(value)};
}
Constant flag(std::string name, bool value) {
    return {"bool", std::move(name), value ? "true" : "false"};
}

std::string storage(kvjit_dtype dtype) {
    switch (dtype) {
        case KVJIT_F32:
            return "float";
        case KVJIT_F16:
            return "f16_t";
        case KVJIT_I8:
            return "i8_t";
        default:
            return "i4x2_t";
    }
}

kvjit_dtype input_type(const KernelSpec& spec) {
    return static_cast<kvjit_dtype>(spec.t1);
}

/// Of the table; packed keys and values have kvstarts in its place.
std::string index_storage(const KernelSpec& spec) {
    return (has_cache(spec) ? spec.index_type : spec.starts_type) == KVJIT_I32 ? "i32" : "i64";
}

/// Tokens a table entry stands for; 0: one entry holds the whole sequence (offset, and dense keys and values).
int page_size(const KernelSpec& spec) {
    if (!has_cache(spec) || spec.cache_mode == KVJIT_OFFSET) return 0;
    return is_paged(spec) ? spec.page_size : 1;
}

/// What all programs that touch keys and values have in common. Two specs that agree here share their binaries,
/// whatever their layouts: strides are run-time values, a page's and a block's too, and only the order of traversal is
/// code.
std::vector<Constant> cache_constants(const KernelSpec& spec) {
    const bool quantised = has_cache(spec) && spec.quant_bit != 0;
    return {
        number("kHeadDim", spec.head_dim),
        type("T1", storage(input_type(spec))),
        type("T2", storage(has_cache(spec) ? cache_type(spec) : input_type(spec))),
        type("T3", quantised ? storage(scale_type(spec)) : "float"),
        number("kQuantBit", quantised ? spec.quant_bit : 0),
        number("kQuantGroup", quantised ? spec.quant_group : spec.head_dim),
        number("kPageSize", page_size(spec)),
        type("Index", index_storage(spec)),
        flag("kHeadInner", is_head_inner(spec)),
    };
}

std::vector<Constant> attend_constants(const KernelSpec& spec, Backend backend) {
    std::vector<Constant> constants = cache_constants(spec);
    constants.push_back(number("kGroup", spec.group));
    if (backend != Backend::kCpu) constants.push_back(number("kDecodeTokens", decode_tokens(spec, backend)));
    constants.push_back(flag("kCausal", spec.is_causal || spec.is_alibi));
    constants.push_back(flag("kAlibi", spec.is_alibi));
    constants.push_back(number("kMaskRank", spec.attn_mask));
    return constants;
}

/// Of an attention call the partials are float32; of Merge they are what attention calls have written, T1.
std::vector<Constant> merge_constants(const KernelSpec& spec) {
    const std::string partial = !has_keys(spec) ? storage(input_type(spec)) : "float";
    return {number("kHeadDim", spec.head_dim), type("T1", storage(input_type(spec))), type("Partial", partial)};
}

std::vector<Constant> check_constants(const KernelSpec& spec) {
    return {flag("kCached", has_cache(spec)), flag("kBlocks", has_cache(spec) && spec.cache_mode == KVJIT_BLOCK_TABLE),
            number("kPageSize", page_size(spec)), type("Index", index_storage(spec))};
}

std::vector<Constant> constants_of(ProgramKind kind, const KernelSpec& spec, Backend backend) {
    switch (kind) {
        case ProgramKind::kStore:
        case ProgramKind::kLoad:
            return cache_constants(spec);
        case ProgramKind::kMerge:
            return merge_constants(spec);
        case ProgramKind::kCheck:
            return check_constants(spec);
        default:
            return attend_constants(spec, backend);
    }
}

}  // namespace

std::span<const ProgramInfo> program_infos() {
    return kInfos;
}

const ProgramInfo& program_info(ProgramKind kind) {
    return kInfos[static_cast<std::size_t>(kind)];
}

int decode_tokens(const KernelSpec& spec, Backend backend) {
    if (backend == Backend::kCpu) return kCpuDecodeRows / spec.group;
    return std::max(1, kDecodeTileRows / spec.group);
}

Result<std::vector<Program>> lower(const KernelSpec& spec, const Target& target) {
    std::vector<Program> programs;
    for (const ProgramKind kind : operator_of(spec).programs(target.backend)) {
        const Result<const Variant*> variant = choose_variant(kind, spec, target);
        if (!variant) return std::unexpected(variant.error());
        programs.push_back(
            {kind, *variant, (*variant)->launch(spec, target), constants_of(kind, spec, target.backend)});
    }
    return programs;
}

std::uint32_t program_bits(const KernelSpec& spec, Backend backend) {
    std::uint32_t bits = 0;
    for (const ProgramKind kind : operator_of(spec).programs(backend)) bits |= program_info(kind).bit;
    return bits;
}

std::string explain(const KernelSpec& spec, const Target& target, std::uint32_t programs) {
    std::string text;
    for (const ProgramKind kind : operator_of(spec).programs(target.backend)) {
        const ProgramInfo& info = program_info(kind);
        if ((info.bit & programs) == 0) continue;
        text.append(info.name).append(":\n").append(explain_variants(kind, spec, target));
    }
    return text;
}

std::vector<Constant> target_constants(const Target& target) {
    if (target.backend != Backend::kCpu) return {number("kMaxSharedBytes", max_shared_bytes(target))};
    return {number("kVectorBytes", target.vector_bytes()),
            flag("kHasFma", target.has("fma")),
            flag("kHasF16c", target.has("f16c")),
            flag("kHasAvx2", target.has("avx2")),
            flag("kHasAvx512", target.vector_bytes() == 64),
            flag("kHasVnni", target.has("avx512vnni"))};
}

std::string identity_text(const Program& program, const Target& target) {
    Identity identity{std::string(program_info(program.kind).name),
                      std::string(program.variant->name),
                      program.variant->revision,
                      {},
                      abi::kKernelAbi,
                      target.text()};
    for (const Constant& constant : program.constants) identity.constants.push_back({constant.name, constant.value});
    return print_identity(identity);
}

}  // namespace kvjit::gen
