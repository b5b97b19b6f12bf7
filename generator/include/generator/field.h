// Kinds of spec fields: how their values are parsed, printed and checked.
#pragma once

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec.h"

namespace kvjit::gen {

using SpecMember = std::int32_t KernelSpec::*;

struct Name {
    std::string_view text;
    std::int32_t value;
};

inline constexpr Name kBools[] = {{"0", 0}, {"1", 1}};

/// A field that takes one of a few names.
template <SpecMember kMember, auto& kNames>
struct NamedField {
    static std::string print(const KernelSpec& spec) {
        const auto it = std::ranges::find(kNames, spec.*kMember, &Name::value);
        return it == std::end(kNames) ? std::to_string(spec.*kMember) : std::string(it->text);
    }
    static bool parse(std::string_view text, KernelSpec& spec) {
        const auto it = std::ranges::find(kNames, text, &Name::text);
        if (it == std::end(kNames)) return false;
        spec.*kMember = it->value;
        return true;
    }
    static bool legal(const KernelSpec& spec) {
        return std::ranges::find(kNames, spec.*kMember, &Name::value) != std::end(kNames);
    }
    static std::int64_t limit(std::int64_t) { return 0; }
    static std::vector<std::string_view> values() {
        std::vector<std::string_view> texts;
        for (const Name& name : kNames) texts.push_back(name.text);
        return texts;
    }
};

/// A field that takes a whole number in a range, a multiple of kStep.
template <SpecMember kMember, std::int32_t kMin, std::int32_t kMax, std::int32_t kStep = 1>
struct NumberField {
    static std::string print(const KernelSpec& spec) { return std::to_string(spec.*kMember); }
    static bool parse(std::string_view text, KernelSpec& spec) {
        std::int32_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || !in_range(value)) return false;
        spec.*kMember = value;
        return true;
    }
    static bool legal(const KernelSpec& spec) { return in_range(spec.*kMember); }
    static bool in_range(std::int32_t value) { return value >= kMin && value <= kMax && value % kStep == 0; }
    static std::int64_t limit(std::int64_t value) { return value < kMin ? kMin : value > kMax ? kMax : kStep; }
    static std::vector<std::string_view> values() { return {}; }
};

/// `decides`, `counts`: see Field; absent if the operator alone decides.
template <class F>
constexpr Field field(std::string_view name, std::string_view takes, std::string_view help,
                      std::string_view decides = "op", bool (*counts)(const KernelSpec&) = nullptr) {
    return {name, takes, help, F::print, F::parse, F::legal, F::limit, decides, counts, F::values};
}

}  // namespace kvjit::gen
