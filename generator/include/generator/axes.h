// A layout as its axes: the letters that a spec's layout is written in, read once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kvjit/kvjit.h"

namespace kvjit::gen {

/// A layout's axes, one letter each: "NHDTd8" has five, of which d is the inner part of D, of extent 8.
struct Axes {
    std::array<char, KVJIT_MAX_RANK> letters{};
    std::array<std::int32_t, KVJIT_MAX_RANK> inner{};  // extents, 0 for an axis whose extent the layout doesn't say
    std::int32_t rank = 0;

    std::string_view order() const { return {letters.data(), static_cast<std::size_t>(rank)}; }
    std::int32_t find(char letter) const;  // its place; -1: nowhere
    bool has(char letter) const { return find(letter) >= 0; }
    /// The inner part's, where the layout has it; else 0.
    std::int32_t extent(char letter) const;
};
/// Nothing where a number is missing or has no place, or where there are more axes than a tensor has. No allocation.
std::optional<Axes> parse_axes(std::string_view layout);
/// Of a legal layout.
Axes axes_of(std::string_view layout);
/// Some of N, T, L, 2, H, D, no letter twice; T, H and D are always there. D and T may be split: further on stands d or
/// t with the extent of its inner part.
bool is_axis_order(std::string_view layout);

}  // namespace kvjit::gen
