#include "cuda/splits.h"

#include <algorithm>

namespace kvjit::rt {
namespace {

/// Merging costs a split about as much as reading this many units of keys.
constexpr std::int64_t kLeastUnits = 4;
constexpr std::int64_t kMaxSplits = 128;
constexpr double kGoodEnough = 0.85;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// Part of the slots that have a block, over all waves.
double occupancy(std::int64_t blocks, std::int64_t slots) {
    return static_cast<double>(blocks) / static_cast<double>(ceil_div(blocks, slots) * slots);
}

}  // namespace

Splits choose_splits(std::int64_t tiles, std::int64_t slots, std::int64_t max_keys, std::int64_t unit) {
    const std::int64_t units = std::max<std::int64_t>(1, ceil_div(max_keys, unit));
    const std::int64_t most = std::clamp<std::int64_t>(units / kLeastUnits, 1, kMaxSplits);
    double best = 0;
    for (std::int64_t count = 1; count <= most; ++count) best = std::max(best, occupancy(tiles * count, slots));
    std::int64_t count = 1;
    while (count < most && occupancy(tiles * count, slots) < kGoodEnough * best) ++count;
    const std::int64_t keys = ceil_div(units, count) * unit;
    return {keys, ceil_div(units * unit, keys)};
}

Splits fixed_splits(std::int64_t keys, std::int64_t max_keys) {
    return {keys, std::max<std::int64_t>(1, ceil_div(max_keys, keys))};
}

}  // namespace kvjit::rt
