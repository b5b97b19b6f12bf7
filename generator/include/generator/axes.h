// A layout's text parsed into its axes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kvjit/kvjit.h"

namespace kvjit::gen {

/// A layout's axes, one letter each: "NHDTd8" has five, the last of which, d, is the inner part of D, of extent 8.
struct Axes {
    std::array<char, KVJIT_MAX_RANK> letters{};
    std::array<std::int32_t, KVJIT_MAX_RANK> inner{};  // extents; 0 where the layout gives none
    std::int32_t rank = 0;

    std::string_view order() const { return {letters.data(), static_cast<std::size_t>(rank)}; }
    std::int32_t find(char letter) const;  // index of the axis; -1: absent
    bool has(char letter) const { return find(letter) >= 0; }
    /// Extent of an inner axis; 0 if the layout lacks it.
    std::int32_t extent(char letter) const;
};
/// nullopt where a number is missing or misplaced, or a tensor can't have as many axes. Doesn't allocate.
std::optional<Axes> parse_axes(std::string_view layout);
/// Precondition: the layout is legal.
Axes axes_of(std::string_view layout);
/// Whether these are axes out of N, T, L, 2, H, D, none twice, with T, H and D among them. D and T may be split: then d
/// or t follows further right, with the extent of the inner part.
bool is_axis_order(std::string_view layout);

}  // namespace kvjit::gen
