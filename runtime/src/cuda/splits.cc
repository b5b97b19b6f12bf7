#include "cuda/splits.h"

#include <algorithm>

#include "check/arithmetic.h"
#include "cuda/shape.h"

namespace kvjit::rt {
namespace {

/// Merging costs a split of a decode's tile about as much as reading this many units of keys.
constexpr std::int64_t kLeastUnits = 4;
/// Writing and reading a row of a prefill's part, which is float32, about as much as reading this many keys.
constexpr std::int64_t kKeysOfRow = 4;
constexpr std::int64_t kMostPartBytes = std::int64_t{64} << 20;
/// Where the GPU is full without splits: the fewest units of a sequence that is split, and of each of its parts.
constexpr std::int64_t kLongUnits = 64;
/// The most blocks a slot that such splits may lead to: most blocks return at once, which takes time all the same.
constexpr std::int64_t kMostWaves = 32;
constexpr std::int64_t kMaxSplits = 128;
/// More than any grid has: a call may claim more, and is refused afterwards.
constexpr std::int64_t kManyBlocks = std::int64_t{1} << 40;
constexpr double kGoodEnough = 0.85;

/// The fraction of the slots that have a block, over all waves.
double occupancy(std::int64_t blocks, std::int64_t slots) {
    return static_cast<double>(blocks) / static_cast<double>(ceil_div(blocks, slots) * slots);
}

}  // namespace

Splits choose_splits(Tiles tiles, std::int64_t slots, std::int64_t max_keys, std::int64_t unit,
                     std::int64_t part_bytes) {
    const std::int64_t units = std::max<std::int64_t>(1, ceil_div(max_keys, unit));
    const std::int64_t most = std::clamp<std::int64_t>(units / kLeastUnits, 1, kMaxSplits);
    const std::int64_t used = std::min(tiles.used, kManyBlocks);
    double best = 0;
    for (std::int64_t count = 1; count <= most; ++count) best = std::max(best, occupancy(used * count, slots));
    std::int64_t filling = 1;
    while (filling < most && occupancy(used * filling, slots) < kGoodEnough * best) ++filling;
    const std::int64_t places = std::max<std::int64_t>(1, tiles.places);
    const std::int64_t room =
        std::min({kMostWaves * slots / places, kMostPartBytes / saturating_product(places, part_bytes), kMaxSplits});
    const std::int64_t count = std::max(filling, std::min(units / (2 * kLongUnits), room));
    const std::int64_t keys = ceil_div(units, count) * unit;
    return {keys, ceil_div(units * unit, keys), (filling > 1 ? kLeastUnits : kLongUnits) * unit};
}

Splits choose_prefill_splits(Tiles tiles, std::int64_t slots, std::int64_t max_keys, std::int64_t tile_rows,
                             std::int64_t part_bytes) {
    const std::int64_t least = std::max<std::int64_t>(1, ceil_div(tile_rows * kKeysOfRow, kSplitUnit)) * kSplitUnit;
    const std::int64_t units = std::max<std::int64_t>(1, ceil_div(max_keys, kSplitUnit));
    const std::int64_t room = kMostPartBytes / saturating_product(std::max<std::int64_t>(1, tiles.places), part_bytes);
    const std::int64_t filling = slots / std::max<std::int64_t>(1, tiles.used);
    const std::int64_t count =
        std::clamp<std::int64_t>(std::min({filling, room, units * kSplitUnit / least}), 1, kMaxSplits);
    const std::int64_t keys = ceil_div(units, count) * kSplitUnit;
    return {keys, ceil_div(units * kSplitUnit, keys), least};
}

Splits fixed_splits(std::int64_t keys, std::int64_t max_keys) {
    return {keys, std::max<std::int64_t>(1, ceil_div(max_keys, keys)), keys};
}

Splits one_split(std::int64_t max_keys, std::int64_t unit) {
    const std::int64_t keys = std::max<std::int64_t>(1, ceil_div(max_keys, unit)) * unit;
    return {keys, 1, keys};
}

}  // namespace kvjit::rt
