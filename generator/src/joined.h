// Concatenated tables.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace kvjit::gen {

/// The parts' elements, one part after the other.
template <class T, std::size_t... kSizes>
constexpr auto joined(const std::array<T, kSizes>&... parts) {
    std::array<T, (kSizes + ...)> all{};
    auto end = all.begin();
    ((end = std::ranges::copy(parts, end).out), ...);
    return all;
}

}  // namespace kvjit::gen
