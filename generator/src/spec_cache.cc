// A spec's cache: its mode, its types, its axes.
#include "spec_parts.h"

namespace kvjit::gen {
namespace {

constexpr std::int64_t kWholeSequence = 0, kPageSize = -1;

/// What a cache mode means.
struct Mode {
    std::int64_t tokens;  // for each entry of the table; kPageSize: the spec's page_size
    abi::Entries entries;
    bool counts_tokens;  // the batch's max_tokens is the number of tokens in the cache, or in a sequence's block
};
/// In the order of kvjit_cache_mode.
constexpr Mode kModeMeanings[] = {
    {kWholeSequence, abi::Entries::kTokens, true}, {1, abi::Entries::kTokens, true},
    {kPageSize, abi::Entries::kTokens, true},      {kPageSize, abi::Entries::kBlocks, false},
    {kPageSize, abi::Entries::kAddresses, false},  {kWholeSequence, abi::Entries::kBlocks, true}};

/// Precondition: the mode is legal.
const Mode& mode_of(const KernelSpec& spec) {
    return kModeMeanings[spec.cache_mode];
}

}  // namespace

bool has_cache(const KernelSpec& spec) {
    return operator_of(spec).keys == Keys::kCache;
}

bool is_paged(const KernelSpec& spec) {
    return mode_of(spec).tokens == kPageSize;
}

std::int64_t page_tokens(const KernelSpec& spec) {
    if (!has_cache(spec)) return 0;
    return is_paged(spec) ? spec.page_size : mode_of(spec).tokens;
}

abi::Entries table_entries(const KernelSpec& spec) {
    return has_cache(spec) ? mode_of(spec).entries : abi::Entries::kTokens;
}

bool has_max_tokens(const KernelSpec& spec) {
    return has_cache(spec) && mode_of(spec).counts_tokens;
}

bool has_num_blocks(const KernelSpec& spec) {
    return table_entries(spec) == abi::Entries::kBlocks;
}

bool has_cache_tensors(const KernelSpec& spec) {
    return has_cache(spec) && table_entries(spec) != abi::Entries::kAddresses;
}

bool is_apart(const KernelSpec& spec) {
    return !axes_of(layout_axes(spec)).has('2');
}

bool is_quantised(const KernelSpec& spec) {
    return spec.quant_bit != 0;
}

bool has_indices(const KernelSpec& spec) {
    return spec.cache_mode != KVJIT_BLOCK_POINTERS;
}

bool has_scale_table(const KernelSpec& spec) {
    return table_entries(spec) == abi::Entries::kAddresses && is_quantised(spec);
}

kvjit_dtype cache_type(const KernelSpec& spec) {
    if (spec.quant_bit == 8) return KVJIT_I8;
    if (spec.quant_bit == 4) return KVJIT_U8;
    return static_cast<kvjit_dtype>(spec.t2 == KVJIT_AUTO ? spec.t1 : spec.t2);
}

kvjit_dtype scale_type(const KernelSpec& spec) {
    return static_cast<kvjit_dtype>(spec.t3 == KVJIT_AUTO ? spec.t1 : spec.t3);
}

std::string_view value_axes(const KernelSpec& spec) {
    const std::string_view axes = text_of(spec, &KernelSpec::value_layout);
    return is_apart(spec) && !axes.empty() ? axes : layout_axes(spec);
}

std::int64_t code_elements(const KernelSpec& spec) {
    return cache_type(spec) == KVJIT_U8 ? spec.head_dim / 2 : spec.head_dim;
}

std::int64_t scale_elements(const KernelSpec& spec) {
    return spec.head_dim / spec.quant_group;
}

bool is_head_inner(const KernelSpec& spec) {
    return !has_cache(spec) || layout_axes(spec).find('H') > layout_axes(spec).find('T');
}

Cut whole(const KernelSpec& spec) {
    return {spec.head_dim, 0};
}

Cut cut_of(const KernelSpec& spec, int part) {
    const Axes axes = axes_of(part == 0 ? layout_axes(spec) : value_axes(spec));
    Cut cut = whole(spec);
    if (axes.has('d'))
        cut.elements = axes.extent('d');
    else if (!axes.order().ends_with('D'))
        cut.elements = 1;
    if (axes.extent('t') != spec.page_size) cut.tokens = axes.extent('t');
    return cut;
}

std::string_view layout_axes(const KernelSpec& spec) {
    return text_of(spec, &KernelSpec::layout);
}

}  // namespace kvjit::gen
