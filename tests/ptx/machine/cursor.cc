#include "ptx/machine/cursor.h"

#include <algorithm>
#include <charconv>

#include "ptx/machine/fault.h"

namespace kvjit::ptx {
namespace {

std::string quoted(std::string_view text) {
    return "'" + std::string(text) + "'";
}

/// Whether the number is written as the bits of a float32.
bool is_float(std::string_view digits) {
    return digits.starts_with("0f") || digits.starts_with("0F");
}

/// The base that a number's beginning tells, which is taken away. Floats are the bits behind 0f; of float64, 0d, there
/// is no instruction.
int take_base(std::string_view& digits) {
    if (digits.size() < 2 || digits[0] != '0') return 10;
    const bool is_hexadecimal = std::string_view("xXfF").contains(digits[1]);
    if (!is_hexadecimal && digits[1] != 'b' && digits[1] != 'B') return 8;
    digits.remove_prefix(2);
    return is_hexadecimal ? 16 : 2;
}

}  // namespace

const Token& Cursor::peek(std::size_t ahead) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

Token Cursor::take() {
    const Token token = peek();
    at_ = std::min(at_ + 1, tokens_.size() - 1);
    return token;
}

bool Cursor::take_if(std::string_view what) {
    if (!peek().is(what)) return false;
    take();
    return true;
}

void Cursor::expect(std::string_view what) {
    if (!take_if(what)) fail(quoted(what) + " is expected in front of " + quoted(peek().text));
}

std::string_view Cursor::word() {
    if (peek().kind != Token::Kind::kWord) fail("a word is expected in front of " + quoted(peek().text));
    return take().text;
}

u64 Cursor::number() {
    const bool is_negative = take_if("-");
    std::string_view digits = word();
    if (is_float(digits)) {
        if (is_negative) fail(quoted(digits) + " has a minus; the bits of a float have their sign");
        if (digits.size() != 10 || digits.ends_with('U')) fail(quoted(digits) + " is no float of eight digits");
    }
    if (digits.ends_with('U')) digits.remove_suffix(1);
    const int base = take_base(digits);
    u64 value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (status != std::errc{} || end != digits.data() + digits.size()) fail(quoted(digits) + " is no number");
    return is_negative ? 0 - value : value;
}

void Cursor::skip_past(std::string_view what) {
    while (!is_end() && !take_if(what)) take();
}

void Cursor::fail(const std::string& what) const {
    throw Fault(FaultKind::kText, "PTX line " + std::to_string(peek().line) + ": " + what);
}

}  // namespace kvjit::ptx
