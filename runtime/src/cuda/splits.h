// Chooses into how many splits the keys of attention's tiles go.
#pragma once

#include <cstdint>

namespace kvjit::rt {

struct Splits {
    std::int64_t keys;   // of one split, a multiple of the unit
    std::int64_t count;  // at least 1; count * keys >= max_keys
    std::int64_t least;  // the fewest keys of a split: a sequence shorter than max_keys goes into fewer splits
};

/// Counts of tiles of rows.
struct Tiles {
    std::int64_t places;  // in the grid, each with room for parts; some may stay without rows
    std::int64_t used;    // that splits should fill the GPU with: as many as have rows in most calls
};

/// Of decode: the fewest splits that occupy the GPU within 85% of the best; for long sequences as many more as prevent
/// one of them from running alone when the others are done, but few blocks, as most of them then find nothing to do,
/// and parts that take up to 64 MiB together. 1 where splits gain nothing.
///   tiles       without splitting a block each
///   slots       blocks that run at once
///   max_keys    upper bound of a sequence's keys
///   unit        splits begin at multiples of this many keys
///   part_bytes  of one tile's rows
Splits choose_splits(Tiles tiles, std::int64_t slots, std::int64_t max_keys, std::int64_t unit,
                     std::int64_t part_bytes);

/// Of prefill, whose tiles have `tile_rows` rows: as many splits as fit on the GPU at once, each with enough keys to be
/// worth its part, and parts that take up to 64 MiB together. 1 where tiles alone occupy more than half of the GPU.
///   part_bytes  of one tile's rows
Splits choose_prefill_splits(Tiles tiles, std::int64_t slots, std::int64_t max_keys, std::int64_t tile_rows,
                             std::int64_t part_bytes);

/// Splits of `keys` keys each, a multiple of the unit, whatever the batch.
Splits fixed_splits(std::int64_t keys, std::int64_t max_keys);

/// All keys, up to a multiple of the unit.
Splits one_split(std::int64_t max_keys, std::int64_t unit);

}  // namespace kvjit::rt
