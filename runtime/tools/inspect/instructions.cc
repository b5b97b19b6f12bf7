#include "inspect/instructions.h"

#include <algorithm>
#include <initializer_list>

#include "inspect/assembly_line.h"

namespace kvjit::tool {
namespace {

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
    return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

int widest_register(std::string_view operands) {
    if (operands.contains("%tmm") || operands.contains("%zmm")) return 64;
    if (operands.contains("%ymm")) return 32;
    return operands.contains("%xmm") ? 16 : 0;
}

/// Whether the destination, the last operand of AT&T's syntax, is memory.
bool writes_memory(std::string_view mnemonic, std::string_view operands) {
    if (starts_with_any(mnemonic, {"cmp", "test", "vptest", "vucomis", "ucomis", "lea", "prefetch", "j", "call"}))
        return false;
    const std::size_t open = operands.rfind('(');
    return open != operands.npos && operands.find(',', operands.find(')', open)) == operands.npos;
}

}  // namespace

InstructionCounts count_instruction(std::string_view text, std::string_view comment) {
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    const std::string_view mnemonic = text.substr(0, end), operands = trimmed(text.substr(end));
    InstructionCounts counts;
    counts.instructions = 1;
    counts.vector_bytes = widest_register(operands);
    counts.fmas =
        starts_with_any(mnemonic, {"vfmadd", "vfmsub", "vfnmadd", "vfnmsub", "vdpbf16", "vpdpb", "vpdpw", "tdp"});
    counts.tile_products = mnemonic.starts_with("tdp");
    counts.multiplies = starts_with_any(mnemonic, {"mulps", "mulpd", "mulss", "vmulps", "vmulpd", "vmulss"});
    counts.spills = comment.ends_with("Spill");
    counts.reloads = comment.ends_with("Reload");
    const bool has_memory =
        operands.contains('(') && !starts_with_any(mnemonic, {"lea", "prefetch", "nop", "j", "call"});
    const bool is_store = has_memory && writes_memory(mnemonic, operands);
    const bool moves =
        mnemonic.contains("mov") ||
        starts_with_any(mnemonic, {"vextract", "vcvtps2ph", "vpscatter", "vscatter", "set", "tilestore", "vpextr"});
    counts.stores = is_store;
    counts.loads = has_memory && (!is_store || !moves);
    return counts;
}

InstructionCounts& InstructionCounts::operator+=(const InstructionCounts& other) {
    instructions += other.instructions;
    fmas += other.fmas;
    tile_products += other.tile_products;
    multiplies += other.multiplies;
    loads += other.loads;
    stores += other.stores;
    spills += other.spills;
    reloads += other.reloads;
    vector_bytes = std::max(vector_bytes, other.vector_bytes);
    return *this;
}

}  // namespace kvjit::tool
