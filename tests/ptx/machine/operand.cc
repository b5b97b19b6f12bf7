#include "ptx/machine/operand.h"

#include <algorithm>
#include <charconv>

namespace kvjit::ptx {
namespace {

constexpr std::pair<std::string_view, Width> kTypes[] = {
    {".pred", Width::kPredicate}, {".b8", Width::k16},  {".u8", Width::k16},  {".s8", Width::k16},
    {".b16", Width::k16},         {".u16", Width::k16}, {".s16", Width::k16}, {".f16", Width::k16},
    {".b32", Width::k32},         {".u32", Width::k32}, {".s32", Width::k32}, {".f32", Width::k32},
    {".b64", Width::k64},         {".u64", Width::k64}, {".s64", Width::k64},
};

constexpr std::pair<std::string_view, Special> kSpecials[] = {
    {"%laneid", Special::kLane},     {"%tid.x", Special::kThreadX},  {"%ntid.x", Special::kThreadsX},
    {"%ctaid.x", Special::kBlockX},  {"%ctaid.y", Special::kBlockY}, {"%nctaid.x", Special::kBlocksX},
    {"%nctaid.y", Special::kBlocksY}};

std::optional<Special> special_named(std::string_view word) {
    const auto* found = std::ranges::find(kSpecials, word, &std::pair<std::string_view, Special>::first);
    if (found == std::end(kSpecials)) return std::nullopt;
    return found->second;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// "%rd12": number 12 of the row %rd. Numbers have no leading zeros.
struct RowElement {
    std::string_view row;
    u64 number;
};
std::optional<RowElement> row_element(std::string_view word) {
    const std::string_view row = word.substr(0, word.find_last_not_of("0123456789") + 1);
    const std::string_view digits = word.substr(row.size());
    if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
    RowElement element{row, 0};
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), element.number);
    if (read.ec != std::errc{}) return std::nullopt;
    return element;
}

std::size_t units_of(Width width) {
    return width == Width::k64 ? 4 : width == Width::k32 ? 2 : 1;
}

}  // namespace

std::map<Registers::Name, Registers::Declared>::const_iterator Registers::declared(std::string_view word) const {
    if (const auto alone = names_.find({word, false}); alone != names_.end()) return alone;
    const auto element = row_element(word);
    if (!element) return names_.end();
    const auto row = names_.find({element->row, true});
    return row != names_.end() && element->number < row->second.count ? row : names_.end();
}

void Registers::declare(std::string_view type, std::string_view name, std::optional<u64> count) {
    const auto* found = std::ranges::find(kTypes, type, &std::pair<std::string_view, Width>::first);
    if (found == std::end(kTypes)) cursor_.fail("registers of type " + std::string(type) + " are not known");
    const Name declared{name, count.has_value()};
    if (declared.is_row && is_digit(name.back()))
        cursor_.fail("a row of registers ends in a digit: " + std::string(name));
    const auto is_element = [&](const auto& other) {
        const auto element = row_element(other.first.text);
        return declared.is_row && !other.first.is_row && element && element->row == name && element->number < *count;
    };
    const bool is_taken = names_.contains(declared) || (!declared.is_row && is_register(name));
    if (is_taken || std::ranges::any_of(names_, is_element))
        cursor_.fail("the register " + std::string(name) + " is declared already");
    names_[declared] = {found->second, count.value_or(1)};
    if (!scopes_.empty()) scopes_.back().push_back(declared);
}

/// The next scope's register of this name is another one.
void Registers::leave_scope() {
    for (const Name& name : scopes_.back()) {
        std::erase_if(places_, [&](const auto& place) { return declared(place.first)->first == name; });
        names_.erase(name);
    }
    scopes_.pop_back();
}

bool Registers::is_register(std::string_view word) const {
    return declared(word) != names_.end();
}

Width Registers::width_of(std::string_view word) const {
    return declared(word)->second.width;
}

bool Registers::fits(const Operand& operand, char letter, bool is_destination) const {
    const bool is_register_kind = operand.kind == Operand::Kind::kRegister;
    switch (letter) {
        case 'A':
        case 'a':
            if (operand.kind != Operand::Kind::kAddress) return false;
            if (!is_register(operand.word)) return letter == 'A' && is_symbol(operand.word);
            return width_of(operand.word) == (letter == 'A' ? Width::k64 : Width::k32);
        case 'W':
            return is_register_kind && width_of(operand.word) == Width::k32;
        case 'i':
            return operand.kind == Operand::Kind::kNumber;
        case 't':
            return operand.kind == Operand::Kind::kName;
        default:
            if (is_register_kind) return width_of(operand.word) == Width{letter};
            if (is_destination || operand.kind == Operand::Kind::kAddress) return false;
            if (operand.kind == Operand::Kind::kNumber) return true;
            return is_symbol(operand.word) ? letter == 'l' : letter != 'p' && special_named(operand.word).has_value();
    }
}

Place Registers::place_of(const Operand& operand, char letter) {
    const bool is_address = operand.kind == Operand::Kind::kAddress;
    const Width width = is_address      ? (letter == 'A' ? Width::k64 : Width::k32)
                        : letter == 'W' ? Width::k32
                                        : Width{letter};
    if (operand.kind == Operand::Kind::kNumber) return place_of_constant(width, operand.bits);
    if (is_register(operand.word)) return place_of_register(operand.word);
    if (is_symbol(operand.word)) return place_of_constant(width, symbols_.at(operand.word));
    return place_of_special(operand.word, width);
}

Place Registers::allocate(Width width, const std::string& name) {
    const std::size_t place = kernel_.units, count = units_of(width);
    constexpr std::size_t kMost = 0xffff;
    if (place + count > kMost) cursor_.fail("the kernel has too many registers");
    kernel_.units += count;
    kernel_.registers.resize(kernel_.units, name);
    return static_cast<Place>(place);
}

Place Registers::place_of_register(std::string_view word) {
    const auto [found, is_new] = places_.try_emplace(word);
    if (is_new) found->second = allocate(width_of(word), std::string(word));
    return found->second;
}

Place Registers::place_of_constant(Width width, u64 bits) {
    const std::string key = static_cast<char>(width) + std::to_string(bits);
    const auto [found, is_new] = constants_.try_emplace(key);
    if (is_new) {
        found->second = allocate(width, "a constant");
        kernel_.constants.push_back({found->second, width, bits});
    }
    return found->second;
}

Place Registers::place_of_special(std::string_view word, Width width) {
    const std::string key = static_cast<char>(width) + std::string(word);
    const auto [found, is_new] = constants_.try_emplace(key);
    if (is_new) {
        found->second = allocate(width, std::string(word));
        kernel_.specials.push_back({found->second, width, *special_named(word)});
    }
    return found->second;
}

}  // namespace kvjit::ptx
