// Tokens in order, with what the grammars of statements and lists need.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/machine/kernel.h"
#include "ptx/machine/lexer.h"

namespace kvjit::ptx {

/// Errors of all: Fault, with the line.
class Cursor {
public:
    explicit Cursor(std::string_view source) : tokens_(tokens_of(source)) {}

    const Token& peek(std::size_t ahead = 0) const;
    bool is_end() const { return peek().kind == Token::Kind::kEnd; }
    Token take();
    bool take_if(std::string_view what);
    void expect(std::string_view what);
    std::string_view word();
    /// A whole number, or the bits of a floating-point number (0f3F800000, 0d...).
    u64 number();
    void skip_past(std::string_view what);
    [[noreturn]] void fail(const std::string& what) const;

private:
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
};

}  // namespace kvjit::ptx
