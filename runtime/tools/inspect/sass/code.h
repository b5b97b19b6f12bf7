// A kernel's machine code, as nvdisasm prints it: instructions, and the blocks that they make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvjit::tool::sass {

struct Instruction {
    std::int64_t address;
    std::string guard;                   // "@!P0"; "": none
    std::string opcode;                  // "LDG"
    std::vector<std::string> modifiers;  // "E", "128"
    std::vector<std::string> operands;   // "R4", "desc[UR4][R2.64]"

    bool has(std::string_view modifier) const;
    /// Takes an issue slot and does nothing: ptxas puts such loads in front of some copies to shared memory.
    bool is_idle() const { return guard == "@!PT"; }
};

/// Instructions that run one after another, at least one, and the numbers of the blocks that may follow.
struct Block {
    std::vector<Instruction> instructions;
    std::vector<int> followers;
};

/// Blocks in the order of their addresses; the entry is the first.
using Code = std::vector<Block>;

/// The code of the listing's only entry, of functions whose names don't begin with kvjit_ nothing. Empty: it has none.
Code read_code(std::string_view listing);

/// The address that begins an instruction's line; nothing: the line is of something else.
std::optional<std::int64_t> address_of(std::string_view line);

/// "0x1a0"
std::string address_text(std::int64_t address);

/// The words of letters, digits and underscores: "R2", "64", "UR4" of "[R2.64+UR4]".
std::vector<std::string_view> words_of(std::string_view text);
/// Whether the text is `word`, alone or before something that no word has in it: "R7" of "R7.reuse".
bool begins_with_word(std::string_view text, std::string_view word);
/// The value of "0x80" or "-0x80", of 32 bits; nothing: the text is something else.
std::optional<std::int64_t> constant_of(std::string_view text);

}  // namespace kvjit::tool::sass
