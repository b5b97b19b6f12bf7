#include "ptx/machine/operand.h"

#include <algorithm>
#include <optional>

#include "ptx/machine/fault.h"

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

std::string_view prefix_of(std::string_view word) {
    const std::size_t last = word.find_last_not_of("0123456789");
    return word.substr(0, last + 1);
}

std::size_t units_of(Width width) {
    return width == Width::k64 ? 4 : width == Width::k32 ? 2 : 1;
}

}  // namespace

std::string_view Registers::declared(std::string_view word) const {
    return names_.contains(word) ? word : prefix_of(word);
}

void Registers::declare(std::string_view type, std::string_view name) {
    const auto* found = std::ranges::find(kTypes, type, &std::pair<std::string_view, Width>::first);
    if (found == std::end(kTypes)) {
        throw Fault(FaultKind::kText, "registers of type " + std::string(type) + " are not known");
    }
    if (!scopes_.empty()) {
        if (is_register(name)) throw Fault(FaultKind::kText, std::string(name) + " hides a register");
        scopes_.back().push_back(name);
    }
    names_[name] = found->second;
}

/// The next scope's register of this name is another one.
void Registers::leave_scope() {
    for (const std::string_view name : scopes_.back()) {
        std::erase_if(places_, [&](const auto& place) { return declared(place.first) == name; });
        names_.erase(name);
    }
    scopes_.pop_back();
}

bool Registers::is_register(std::string_view word) const {
    return names_.contains(declared(word));
}

Width Registers::width_of(std::string_view word) const {
    return names_.at(declared(word));
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
    if (place + count > kMost) throw Fault(FaultKind::kText, "the kernel has too many registers");
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
