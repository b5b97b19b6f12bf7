#include "generator/program.h"

#include <algorithm>
#include <ranges>

#include "common/abi.h"
#include "generator/identity.h"
#include "generator/x86.h"

namespace kvjit::gen {
namespace {

// A GPU's decode works on tiles of rows: it takes as many tokens as fit one tile, or one token of several tiles. A
// CPU's converts each key anew for every token, prefill packs keys for tiles of rows, few or many: decode takes tokens
// as long as that costs less. Costs are in units of a row's arithmetic. Decode of bfloat16 by AMX has tiles of rows,
// too, and takes as many tokens as a GPU's.

/// The most rows for which costs were compared.
constexpr int kMostDecodeRows = 64;

/// On AMD's processors, by a Zen 5 and keys from memory (`kvjit bench`): packing, which waited for memory then, and
/// full tiles of 32 rows (two or four of AVX2's and SSE's). Elsewhere by keys in the second-level cache
/// (BM_decode_cached), as if all tiles were one. AMX makes prefill cheaper where queries are bfloat16, most of all
/// where keys need no packing.
int cpu_prefill_cost(const KernelSpec& spec, const Target& target, std::span<const Program> programs, int rows) {
    const bool tiles = std::ranges::any_of(programs, [](const Program& program) {
        return program.info->bit == KVJIT_PROGRAM_PREFILL && program.variant->uses_tiles;
    });
    const bool needs_packing = spec.quant_bit != 0 || (has_cache(spec) && cache_type(spec) != KVJIT_BF16);
    if (tiles && spec.t1 == KVJIT_BF16) return needs_packing ? 20 : 10;
    return is_amd(target.features) ? 18 + 31 * ((rows + 31) / 32) : 30;
}

/// Of decode, `tokens` tokens: their rows, padded to the tiles of attend_decode, and the loading of keys and values. By
/// AMX's products of bytes codes are loaded once for 32 rows, and a row takes less; by count of instructions.
int cpu_decode_cost(const KernelSpec& spec, bool tiles, int tokens) {
    const int rows = spec.group <= 2 ? spec.group : (spec.group + 3) / 4 * 4;
    if (tiles) return (tokens * rows + 31) / 32 * 2 + tokens * rows * 9 / 20;
    return tokens * (rows + (spec.quant_bit != 0 ? 2 : 1));
}

/// Rows of a tile of decode by AMX's products of bfloat16 (templates/cpu/attend/tile_pairs.h): up to so many take no
/// more time than one.
constexpr int kAmxDecodeRows = 16;

bool decodes_by_tiles(std::span<const Program> programs) {
    return std::ranges::any_of(programs, [](const Program& program) {
        return program.info->bit == KVJIT_PROGRAM_DECODE && program.variant->uses_tiles;
    });
}

auto programs_of(const KernelSpec& spec, Backend backend) {
    return std::views::filter(programs(), [op = spec.op, backend](const ProgramInfo& info) {
        return (info.use(backend).ops >> op & 1) != 0;
    });
}

std::string explain_variants(std::span<const Variant> variants, const KernelSpec& spec, const Target& target) {
    std::string text;
    bool found = false;
    for (const Variant& variant : variants) {
        text.append(variant.name).append(" (").append(variant.template_path).append(") ");
        const Result<void> serves = found ? Result<void>{} : variant.serves(spec, target);
        text += found ? "is not asked" : serves ? "serves" : "declines: " + serves.error().message;
        text += '\n';
        found = found || serves.has_value();
    }
    return text;
}

}  // namespace

std::uint32_t known_programs() {
    return (1U << programs().size()) - 1;
}

bool runs(const KernelSpec& spec, kvjit_programs program) {
    const ProgramInfo& info = *std::ranges::find(programs(), program, &ProgramInfo::bit);
    return ((info.cpu.ops | info.cuda.ops) >> spec.op & 1) != 0;
}

Result<const Variant*> choose_variant(const ProgramInfo& info, const KernelSpec& spec, const Target& target) {
    Result<const Variant*> chosen = nullptr;
    for (const Variant& variant : info.use(target.backend).variants) {
        const Result<void> serves = variant.serves(spec, target);
        if (serves) return &variant;
        chosen = std::unexpected(serves.error());
    }
    return chosen;
}

int cpu_decode_tokens(const KernelSpec& spec, const Target& target, std::span<const Program> programs) {
    const bool tiles = decodes_by_tiles(programs);
    if (tiles && spec.quant_bit == 0) return std::max(1, kAmxDecodeRows / spec.group);
    const auto pays = [&](int tokens) {
        const int rows = tokens * spec.group;
        return rows <= kMostDecodeRows &&
               cpu_decode_cost(spec, tiles, tokens) <= cpu_prefill_cost(spec, target, programs, rows);
    };
    // Where a further tile of prefill begins it may pay once more; those tokens are left to prefill.
    int tokens = 0;
    while (pays(tokens + 1)) ++tokens;
    return tokens;
}

int gpu_decode_tokens(const KernelSpec& spec) {
    // Prefill takes longer over a quantised cache, whose codes it makes numbers of, and so pays from more rows on.
    const bool quantised = has_cache(spec) && spec.quant_bit != 0;
    const int rows = quantised && element_type(spec.t1).multiplies ? 2 * kDecodeTileRows : kDecodeTileRows;
    return std::max(1, rows / spec.group);
}

Result<std::vector<Program>> lower(const KernelSpec& spec, const Target& target) {
    std::vector<Program> lowered;
    for (const ProgramInfo& info : programs_of(spec, target.backend)) {
        const Result<const Variant*> variant = choose_variant(info, spec, target);
        if (!variant) return std::unexpected(variant.error());
        lowered.push_back({&info, *variant, (*variant)->launch(spec, target), info.constants(spec, target.backend),
                           (*variant)->uses_tiles && !target.emulates_amx});
    }
    return lowered;
}

bool use_tiles(std::span<const Program> programs) {
    return std::ranges::any_of(programs, &Program::uses_tiles);
}

std::uint32_t program_bits(const KernelSpec& spec, Backend backend) {
    std::uint32_t bits = 0;
    for (const ProgramInfo& info : programs_of(spec, backend)) bits |= info.bit;
    return bits;
}

std::string explain(const KernelSpec& spec, const Target& target, std::uint32_t programs) {
    std::string text;
    for (const ProgramInfo& info : programs_of(spec, target.backend)) {
        if ((info.bit & programs) == 0) continue;
        text.append(info.label).append(":\n");
        text.append(explain_variants(info.use(target.backend).variants, spec, target));
    }
    return text;
}

std::string identity_text(const Program& program, const Target& target) {
    Identity identity{std::string(program.info->name),
                      std::string(program.variant->name),
                      program.variant->revision,
                      {},
                      abi::kKernelAbi,
                      target.text()};
    for (const Constant& constant : program.constants) identity.constants.push_back({constant.name, constant.value});
    return print_identity(identity);
}

}  // namespace kvjit::gen
