// PTX as tokens.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace kvjit::ptx {

struct Token {
    enum class Kind { kWord, kText, kMark, kEnd };  // kText: in quotes, which are left out
    Kind kind = Kind::kEnd;
    std::string_view text;  // of the source
    int line = 0;           // counted from 1

    bool is(std::string_view what) const { return kind != Kind::kText && text == what; }
};

/// Words are names, opcodes with their dots and ::, registers, directives and numbers; every other character is a mark.
/// The last token is kEnd. The tokens refer to `source`. Errors: Fault.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace kvjit::ptx
