#include "generator/decode_tokens.h"

#include <algorithm>

#include "generator/x86.h"

// A GPU's decode works on tiles of rows: it takes as many tokens as fit one tile, or one token of several tiles. A
// CPU's converts each key anew for every token, prefill packs keys for tiles of rows, few or many: decode takes the
// numbers of tokens for which that costs less. Decode of bfloat16 by AMX has tiles of rows, too, and takes
// up to kAmxDecodeRows. Costs are in halves of what a row's arithmetic takes in decode.

namespace kvjit::gen {
namespace {

/// The most rows for which costs were compared.
constexpr int kMostRows = 64;

/// Rows of a tile of prefill, and of decode by AMX's products of bytes.
constexpr int kTileRows = 32;

/// Rows up to which decode by AMX's products of bfloat16 (templates/cpu/attend/pair_tiles.h) takes less time than
/// prefill whatever the group, by `kvjit bench` on an Emerald Rapids: 32 take 0.83 to 1.16 times as long.
constexpr int kAmxDecodeRows = 24;

int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

const Program* find(std::span<const Program> programs, kvjit_programs bit) {
    const auto found = std::ranges::find(programs, bit, [](const Program& program) { return program.info->bit; });
    return found == programs.end() ? nullptr : &*found;
}

bool uses_tiles(const Program* program) {
    return program != nullptr && program->variant->uses_tiles;
}

/// AMX makes prefill cheaper where queries are bfloat16, most of all where keys need no packing.
int tiles_prefill_cost(const KernelSpec& spec) {
    if (spec.t1 != KVJIT_BF16) return 60;
    const bool needs_packing = spec.quant_bit != 0 || (has_cache(spec) && cache_type(spec) != KVJIT_BF16);
    return needs_packing ? 40 : 20;
}

/// Of so many rows: packing, and each half of a tile that has rows. By keys from memory (`kvjit bench`): on an Emerald
/// Rapids, and for AMD's processors on a Zen 5, whose packing waited for memory then, with whole tiles alone.
int prefill_cost(const KernelSpec& spec, const Target& target, const Program* prefill, int rows) {
    if (uses_tiles(prefill)) return tiles_prefill_cost(spec);
    const int halves = ceil_div(rows, kTileRows / 2);
    if (is_amd(target.features)) return 36 + 31 * halves;
    return target.has("avx512f") ? 15 + 21 * halves : 8 + 28 * halves;
}

/// What a token's keys and values cost to load, beside its rows.
int load_cost(const KernelSpec& spec, const Target& target, const Program* decode) {
    const bool by_bytes = decode != nullptr && decode->variant->name == "vnni" && !is_amd(target.features);
    if (spec.quant_bit != 0) return by_bytes ? (spec.quant_bit == 8 ? 2 : 1) : 4;
    return has_cache(spec) && cache_type(spec) == KVJIT_BF16 ? 1 : 2;
}

/// Of `tokens` tokens: their rows, padded to the tiles of attend_decode, and the loading of keys and values. By AMX's
/// products of bytes codes are loaded once for a tile, and a row takes less; by count of instructions.
int decode_cost(const KernelSpec& spec, const Target& target, const Program* decode, int tokens) {
    const int rows = spec.group <= 2 ? spec.group : ceil_div(spec.group, 4) * 4;
    if (uses_tiles(decode)) return 4 * ceil_div(tokens * rows, kTileRows) + tokens * rows * 9 / 10;
    return tokens * (2 * rows + load_cost(spec, target, decode));
}

}  // namespace

TokenCounts cpu_decode_tokens(const KernelSpec& spec, const Target& target, std::span<const Program> programs) {
    const Program* decode = find(programs, KVJIT_PROGRAM_DECODE);
    const Program* prefill = find(programs, KVJIT_PROGRAM_PREFILL);
    const bool by_pairs = uses_tiles(decode) && spec.quant_bit == 0;
    const auto pays = [&](int tokens, int rows) {
        if (by_pairs) return tokens == 1 || rows <= kAmxDecodeRows;
        return rows <= kMostRows &&
               decode_cost(spec, target, decode, tokens) <= prefill_cost(spec, target, prefill, rows);
    };
    TokenCounts taken;
    for (int tokens = 1; tokens <= TokenCounts::kMost; ++tokens) {
        if (pays(tokens, tokens * spec.group)) taken.add(tokens);
    }
    return taken;
}

int gpu_decode_tokens(const KernelSpec& spec) {
    // Prefill takes longer over a quantised cache, whose codes it makes numbers of, and so pays from more rows on.
    const bool quantised = has_cache(spec) && spec.quant_bit != 0;
    const int rows = quantised && element_type(spec.t1).multiplies ? 2 * kDecodeTileRows : kDecodeTileRows;
    return std::max(1, rows / spec.group);
}

}  // namespace kvjit::gen
