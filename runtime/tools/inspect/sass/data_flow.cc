#include "inspect/sass/data_flow.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "inspect/sass/pipes.h"

namespace kvjit::tool::sass {
namespace {

using Registers = std::set<int>;
using Operands = std::span<const std::string>;

bool is_one_of(std::span<const std::string_view> opcodes, const Instruction& instruction) {
    return std::ranges::find(opcodes, instruction.opcode) != opcodes.end();
}

/// "R12" as 12; nothing: the word is no register.
std::optional<int> number_of_register(std::string_view word) {
    int number = 0;
    if (word.size() < 2 || word[0] != 'R') return std::nullopt;
    const auto [rest, error] = std::from_chars(word.begin() + 1, word.end(), number);
    return error == std::errc() && rest == word.end() ? std::optional(number) : std::nullopt;
}

/// "P0", "UP3", "PT"
bool is_predicate(std::string_view operand) {
    if (operand.starts_with('U')) operand.remove_prefix(1);
    return operand.size() > 1 && operand[0] == 'P' && (operand[1] == 'T' || (operand[1] >= '0' && operand[1] <= '9'));
}

/// The registers of operands; of addresses of 64 bits both.
Registers read_by(Operands operands) {
    Registers read;
    for (const std::string_view operand : operands) {
        for (const std::string_view word : words_of(operand)) {
            const std::optional<int> number = number_of_register(word);
            if (!number) continue;
            read.insert(*number);
            const std::string_view rest = operand.substr(static_cast<std::size_t>(word.end() - operand.begin()));
            if (rest.starts_with(".64")) read.insert(*number + 1);
        }
    }
    return read;
}

/// Registers that a load's value takes.
int words_of_load(const Instruction& instruction) {
    constexpr std::string_view kLoads[] = {"LDG", "LD", "LDS"};
    if (!is_one_of(kLoads, instruction)) return 1;
    return instruction.has("128") ? 4 : instruction.has("64") ? 2 : 1;
}

struct Access {
    Registers written, read;
};

Access access_of(const Instruction& instruction) {
    constexpr std::string_view kWritesNone[] = {"STS", "STG", "LDGSTS", "BRA", "RED", "ST"};
    const Operands operands = instruction.operands;
    if (is_one_of(kWritesNone, instruction)) return {{}, read_by(operands)};
    const auto target = std::ranges::find_if_not(operands, is_predicate);
    if (target == operands.end()) return {{}, read_by(operands)};
    Access access{{}, read_by({target + 1, operands.end()})};
    const std::vector<std::string_view> words = words_of(*target);
    const auto first = words.empty() || !target->starts_with('R') ? std::nullopt : number_of_register(words[0]);
    for (int word = 0; first && word < words_of_load(instruction); ++word) access.written.insert(*first + word);
    return access;
}

bool meets(const Registers& some, const Registers& others) {
    return std::ranges::any_of(some, [&](int each) { return others.contains(each); });
}

void subtract(Registers& from, const Registers& registers) {
    for (const int each : registers) from.erase(each);
}

/// Follows values from loads to their uses.
class Follower {
public:
    void take(const Instruction& instruction) {
        constexpr std::string_view kLoads[] = {"LDG", "LD"};
        constexpr std::string_view kHandsOn[] = {"MOV", "IMAD", "PRMT", "SEL"};  // between a load and a store
        const Access access = access_of(instruction);
        if (meets(access.read, awaited_)) {
            ++loads_.trips;
            awaited_.clear();
        }
        const bool takes_loaded = meets(access.read, loaded_);
        loads_.copies += takes_loaded && instruction.opcode == "STS";
        subtract(loaded_, access.written);
        subtract(awaited_, access.written);
        const bool is_load = is_one_of(kLoads, instruction);
        if (is_load) awaited_.insert(access.written.begin(), access.written.end());
        if (is_load || (takes_loaded && is_one_of(kHandsOn, instruction)))
            loaded_.insert(access.written.begin(), access.written.end());
    }
    Loads loads() const { return loads_; }

private:
    Loads loads_;
    Registers loaded_, awaited_;  // with loaded values; with those for which nothing has waited yet
};

/// Groups of copies that the wait may leave pending; nothing: the instruction is none for copies.
std::optional<std::int64_t> pending_after(const Instruction& wait) {
    const bool is_wait = wait.opcode == "DEPBAR" && wait.operands.size() > 1 && wait.operands[0] == "SB0";
    return is_wait ? constant_of(wait.operands[1]) : std::nullopt;
}

}  // namespace

Loads find_loads(std::span<const Counted> code) {
    Follower follower;
    for (const Counted& each : code) follower.take(*each.instruction);
    return follower.loads();
}

std::int64_t bytes_in_flight(std::span<const Counted> code) {
    double copied = 0, groups = 0, waits = 0;
    std::optional<std::int64_t> least_pending;
    for (const auto& [instruction, times] : code) {
        copied += static_cast<double>(copied_bytes(*instruction) * times);
        if (instruction->opcode == "LDGDEPBAR") groups += static_cast<double>(times);
        const std::optional<std::int64_t> pending = pending_after(*instruction);
        if (!pending) continue;
        ++waits;
        least_pending = std::min(least_pending.value_or(*pending), *pending);
    }
    if (groups == 0 || !least_pending) return 0;
    return std::llrint((static_cast<double>(*least_pending) + groups / waits) * copied / groups);
}

}  // namespace kvjit::tool::sass
