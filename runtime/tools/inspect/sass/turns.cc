#include "inspect/sass/turns.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace kvjit::tool::sass {
namespace {

using Turn = std::span<const Instruction* const>;

bool sets(const Instruction& instruction, std::string_view target) {
    return !instruction.operands.empty() && begins_with_word(instruction.operands[0], target);
}

/// What a register gains in each turn.
struct Growth {
    std::size_t place;  // of the instruction that adds it
    std::int64_t amount;
};

std::string_view without_reuse(std::string_view operand) {
    constexpr std::string_view kReuse = ".reuse";
    return operand.ends_with(kReuse) ? operand.substr(0, operand.size() - kReuse.size()) : operand;
}

/// What an addition of one constant to the register adds; nothing: it is something else, or takes from it.
std::optional<std::int64_t> amount_added(const Instruction& change, std::string_view reg) {
    constexpr std::string_view kAdditions[] = {"VIADD", "IADD3", "IMAD"}, kNothing[] = {"RZ", "PT"};
    if (std::ranges::find(kAdditions, change.opcode) == std::end(kAdditions)) return std::nullopt;
    std::optional<std::int64_t> amount;
    bool has_register = false;
    for (const std::string& operand : std::span(change.operands).subspan(1)) {
        const std::string_view source = without_reuse(operand);
        const std::optional<std::int64_t> constant = constant_of(source);
        if (source == reg) {
            has_register = true;
        } else if (constant ? amount.has_value() : std::ranges::find(kNothing, source) == std::end(kNothing)) {
            return std::nullopt;
        } else if (constant) {
            amount = constant;
        }
    }
    return has_register && amount && *amount > 0 ? amount : std::nullopt;
}

/// By the only instruction that changes the register; nothing if there are several, or it does something else.
std::optional<Growth> growth_of(Turn turn, std::string_view reg) {
    std::optional<std::size_t> found;
    for (std::size_t place = 0; place < turn.size(); ++place) {
        const std::string& opcode = turn[place]->opcode;
        const bool only_reads = opcode.starts_with("ISETP") || opcode.starts_with("ST") || opcode.starts_with("BRA");
        if (only_reads || !sets(*turn[place], reg)) continue;
        if (found) return std::nullopt;
        found = place;
    }
    if (!found) return std::nullopt;
    const std::optional<std::int64_t> amount = amount_added(*turn[*found], reg);
    return amount ? std::optional(Growth{*found, *amount}) : std::nullopt;
}

/// "R7" of "R7.reuse", "UR4"; "": the operand is no register.
std::string_view register_of(std::string_view operand) {
    const std::string_view number = operand.substr(std::min<std::size_t>(operand.starts_with('U'), operand.size()));
    if (number.size() < 2 || number[0] != 'R' || number[1] < '0' || number[1] > '9') return {};
    return words_of(operand).front();
}

/// Whether the comparison at `place` decides about the branch back.
bool decides(Turn turn, std::size_t place) {
    const std::string& predicate = turn[place]->operands[0];
    const std::string& guard = turn.back()->guard;
    if (guard.substr(std::min(guard.find_first_not_of("@!"), guard.size())) != predicate) return false;
    return std::ranges::none_of(turn.subspan(place + 1), [&](const Instruction* each) {
        return each->opcode.contains("SETP") && sets(*each, predicate);
    });
}

}  // namespace

std::optional<std::int64_t> constant_turns(Turn turn) {
    for (std::size_t place = 0; place < turn.size(); ++place) {
        const Instruction& compare = *turn[place];
        if (compare.opcode != "ISETP" || compare.operands.size() < 4) continue;
        const std::optional<std::int64_t> bound = constant_of(compare.operands[3]);
        const std::string_view counter = register_of(compare.operands[2]);
        if (!bound || counter.empty() || !decides(turn, place)) continue;
        const std::optional<Growth> growth = growth_of(turn, counter);
        if (!growth) continue;
        const std::int64_t turns = (*bound + growth->amount - 1) / growth->amount;
        return growth->place < place ? turns : turns + 1;
    }
    return std::nullopt;
}

}  // namespace kvjit::tool::sass
