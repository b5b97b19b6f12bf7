// Saturating 64-bit arithmetic on untrusted numbers.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>

namespace kvjit::rt {

inline constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

/// The product of numbers >= 0.
constexpr std::int64_t saturating_product(std::same_as<std::int64_t> auto... factors) {
    std::int64_t product = 1;
    bool overflow = false;
    bool zero = false;
    ((overflow |= __builtin_mul_overflow(product, factors, &product), zero |= factors == 0), ...);
    return zero ? 0 : overflow ? kMaxInt64 : product;
}

/// The sum of two numbers, the second >= 0.
constexpr std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? kMaxInt64 : sum;
}

/// A number of tokens or keys of a sequence. It may be unchecked: starts may fall, or lie so far apart that sums would
/// overflow.
constexpr std::int64_t bounded(std::int64_t rows) {
    return std::clamp<std::int64_t>(rows, 0, kMaxInt64 / 4);
}

/// The number of pieces of `size` > 0 in `count` >= 0; the last may be smaller.
constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t size) {
    return count / size + (count % size != 0);
}

/// Bytes of the widest element of any tensor.
inline constexpr std::int64_t kMaxElementBytes = 8;

/// The most rows of `row_elements` whose bytes fit 64 bits.
constexpr std::int64_t most_rows(std::int64_t row_elements) {
    const std::int64_t row_bytes = saturating_product(row_elements, kMaxElementBytes);
    return row_bytes == kMaxInt64 ? 0 : kMaxInt64 / row_bytes;
}

}  // namespace kvjit::rt
