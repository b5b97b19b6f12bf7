// Assembly text and machine code as instructions, and what machine each of them takes.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvjit::test {

struct Instruction {
    std::string prefixes, mnemonic, operands;  // AT&T syntax; "rep " of "rep stos", "{vex} " of "{vex} vpdpbusd"
};

/// At least 20, or the test fails: then the text is none.
std::vector<Instruction> instructions(const std::string& text);

/// Those of an object file's code, by GNU objdump: all bytes are instructions, at least 20, or the test fails.
std::vector<Instruction> disassembled(const std::string& object);

/// The first instruction that fits, "" if none does: what a failure shows.
template <class Predicate>
std::string first(const std::vector<Instruction>& all, Predicate fits) {
    const auto it = std::ranges::find_if(all, fits);
    return it == all.end() ? std::string() : it->mnemonic + " " + it->operands;
}

bool is_fma(const Instruction& i);
/// Of 64-byte and of 32-byte registers.
bool is_wide(const Instruction& i);
bool is_ymm(const Instruction& i);

/// What x86-64-v2, -v3 or AVX-512's foundation are the first to have.
bool needs_v2(const Instruction& i);
bool needs_v3(const Instruction& i);
bool needs_avx512(const Instruction& i);

/// A feature, and the first instruction that takes it.
struct Excess {
    std::string_view feature;
    std::string instruction;
};
/// What the code takes of the features that `has` denies: of each the first instruction.
std::vector<Excess> excess(const std::vector<Instruction>& code, const std::function<bool(std::string_view)>& has);

}  // namespace kvjit::test
