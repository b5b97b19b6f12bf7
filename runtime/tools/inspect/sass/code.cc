#include "inspect/sass/code.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <utility>

#include "inspect/assembly_line.h"

namespace kvjit::tool::sass {
namespace {

constexpr std::string_view kLabel = ".L_x_";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_of_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Takes what stands before `end` off the text; all of it where there is no `end`.
std::string_view take_until(std::string_view& text, std::string_view end) {
    const std::size_t at = std::min(text.find_first_of(end), text.size());
    const std::string_view taken = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return taken;
}

std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
    std::vector<std::string> parts;
    while (!text.empty()) parts.emplace_back(trimmed(take_until(text, separator)));
    return parts;
}

/// ".L_x_12" where the text begins with a label; "": it doesn't.
std::string_view label_at(std::string_view text) {
    if (!text.starts_with(kLabel)) return {};
    const auto end = std::ranges::find_if_not(text.substr(kLabel.size()), is_digit);
    return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// The labels in a branch's operands. A switch has several.
std::vector<std::string> targets_of(const Instruction& branch) {
    std::vector<std::string> targets;
    for (const std::string_view operand : branch.operands) {
        for (std::size_t at = 0; (at = operand.find(kLabel, at)) != operand.npos; ++at) {
            targets.emplace_back(label_at(operand.substr(at)));
        }
    }
    return targets;
}

bool is_predicate(std::string_view word) {
    if (word.starts_with('U')) word.remove_prefix(1);
    return word.size() == 2 && word[0] == 'P' && is_digit(word[1]);
}

/// Control goes elsewhere, for good unless a predicate stands before it. ptxas makes some branches of CALL, to a label;
/// the calls that return are of functions with names.
bool ends_block(const Instruction& instruction) {
    constexpr std::string_view kEnds[] = {"EXIT", "RET", "BRA", "BRX", "BSYNC"};
    if (std::ranges::find(kEnds, instruction.opcode) != std::end(kEnds)) return true;
    return instruction.opcode == "CALL" && !targets_of(instruction).empty();
}

/// Of one that ends a block: whether no thread goes on past it.
bool is_always_taken(const Instruction& branch) {
    const auto names_predicate = [](const std::string& operand) {
        return std::ranges::any_of(words_of(operand), is_predicate);
    };
    return branch.guard.empty() && !branch.has("DIV") && !branch.has("CONV") &&
           std::ranges::none_of(branch.operands, names_predicate);
}

/// An instruction's line: "        /*0080*/               @P0 LDG.E R2, desc[UR6][R2.64] ;".
std::optional<Instruction> parse_instruction(std::string_view line) {
    const std::optional<std::int64_t> address = address_of(line);
    const std::size_t end = line.find(';');
    if (!address || end == line.npos) return std::nullopt;
    Instruction instruction{};
    instruction.address = *address;
    line = line.substr(0, end);
    line = trimmed(line.substr(line.find("*/") + 2));
    if (line.starts_with('@')) instruction.guard = take_until(line, " \t");
    line = trimmed(line);
    std::string_view name = take_until(line, " \t");
    instruction.opcode = take_until(name, ".");
    instruction.modifiers = parts_of(name, ".");
    instruction.operands = parts_of(line, ",");
    return instruction;
}

class Reader {
public:
    void take(std::string_view line) {
        if (const std::string_view text = trimmed(line); text.starts_with(".section")) {
            const std::string_view name = trimmed(text.substr(std::string_view(".section").size()));
            if (name.starts_with(".text.")) is_entry_ = name.starts_with(".text.kvjit_");
            return;
        }
        if (!is_entry_) return;
        if (const std::string_view label = label_at(line); !label.empty()) {
            begin_block();
            at_label_[std::string(label)] = static_cast<int>(code_.size()) - 1;
        } else if (std::optional<Instruction> instruction = parse_instruction(line)) {
            add(*std::move(instruction));
        }
    }

    Code finish() {
        if (code_.back().instructions.empty()) code_.pop_back();
        for (std::size_t number = 0; number < code_.size(); ++number) connect(number);
        return std::move(code_);
    }

private:
    void begin_block() {
        if (!code_.back().instructions.empty()) code_.emplace_back();
        targets_.resize(code_.size());
    }

    /// BSYNC goes where the BSSY before said that threads meet, which wait for each other by the same barrier.
    void add(Instruction instruction) {
        const std::string barrier = instruction.operands.empty() ? "" : instruction.operands[0];
        if (instruction.opcode == "BSSY") meetings_[barrier] = targets_of(instruction);
        const bool ends = ends_block(instruction);
        if (ends) targets_.back() = instruction.opcode == "BSYNC" ? meetings_[barrier] : targets_of(instruction);
        code_.back().instructions.push_back(std::move(instruction));
        if (ends) begin_block();
    }

    void connect(std::size_t number) {
        Block& block = code_[number];
        const Instruction& last = block.instructions.back();
        const bool goes_on = !ends_block(last) || !is_always_taken(last);
        if (goes_on && number + 1 < code_.size()) block.followers.push_back(static_cast<int>(number) + 1);
        for (const std::string& target : targets_[number]) {
            const auto found = at_label_.find(target);
            if (found != at_label_.end() && found->second < std::ssize(code_)) block.followers.push_back(found->second);
        }
    }

    bool is_entry_ = false;
    Code code_ = Code(1);
    std::vector<std::vector<std::string>> targets_{1};  // of each block's branch
    std::map<std::string, int> at_label_;
    std::map<std::string, std::vector<std::string>> meetings_;  // by barrier register
};

}  // namespace

bool Instruction::has(std::string_view modifier) const {
    return std::ranges::find(modifiers, modifier) != modifiers.end();
}

std::optional<std::int64_t> address_of(std::string_view line) {
    line = trimmed(line);
    const std::size_t end = line.find("*/");
    if (!line.starts_with("/*") || end == line.npos) return std::nullopt;
    std::int64_t address = 0;
    const auto [rest, error] = std::from_chars(line.begin() + 2, line.begin() + end, address, 16);
    return error == std::errc() && rest == line.begin() + end ? std::optional(address) : std::nullopt;
}

std::string address_text(std::int64_t address) {
    std::ostringstream text;
    text << std::hex << std::showbase << address;
    return text.str();
}

Code read_code(std::string_view listing) {
    Reader reader;
    for_each_line(listing, [&](std::string_view line) { reader.take(line); });
    return reader.finish();
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0, begin = 0; at <= text.size(); ++at) {
        if (at < text.size() && is_of_word(text[at])) continue;
        if (at > begin) words.push_back(text.substr(begin, at - begin));
        begin = at + 1;
    }
    return words;
}

bool begins_with_word(std::string_view text, std::string_view word) {
    return text.starts_with(word) && (text.size() == word.size() || !is_of_word(text[word.size()]));
}

std::optional<std::int64_t> constant_of(std::string_view text) {
    const bool is_negative = text.starts_with('-');
    if (is_negative) text.remove_prefix(1);
    if (!text.starts_with("0x")) return std::nullopt;
    std::int64_t value = 0;
    const auto [rest, error] = std::from_chars(text.begin() + 2, text.end(), value, 16);
    if (error != std::errc() || rest != text.end() || value > 0xffffffff) return std::nullopt;
    return is_negative ? -value : value;
}

}  // namespace kvjit::tool::sass
