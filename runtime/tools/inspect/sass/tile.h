// What a tile of an attention program holds: keys, rows, copies and products of one warp.
#pragma once

#include <cstdint>

#include "cuda/shape.h"
#include "result.h"

namespace kvjit::tool::sass {

/// What multiplies: the variants dot, mma and wgmma.
enum class Multiplier { kLanes, kWarps, kWarpgroups };

/// A program of attention, as far as its tiles depend on it.
struct Attention {
    bool is_decode;  // else prefill
    Multiplier multiplier;
    int group;          // query heads of a kv head
    CacheFormat cache;  // of packed keys and values, too
    int max_shared_bytes;

    bool uses_tensor() const { return multiplier != Multiplier::kLanes; }
};

/// Of one warp.
struct Tile {
    int keys;
    int rows;                     // of queries, which exist: decode's are those of one new token
    int room;                     // rows that a warp's products have room for
    int computed_rows;            // of these: decode's dot products stop after the call's, in steps
    std::int64_t value_products;  // float32's multiply-adds of a lane, of probabilities and values
    std::int64_t cache_bytes;     // of its keys and values, with their scales
    std::int64_t operations;      // floating-point operations that its rows need

    int threads;                               // that share the copies of a tile
    int row_access;                            // bytes of a copy of rows
    int copied_row_bytes, copied_scale_bytes;  // of a key or value, those that only fill up included

    /// A lane's copies of `width` bytes of a tile's keys, or values: of rows, or of scales if rows take another width.
    std::int64_t copies_of_lane(int width) const;
};

/// By templates/cuda/shape.h. tensor_products: tensor cores' instructions in the loop over tiles, from which the keys
/// of prefill's tiles follow: there are fewer where scores are modified. Errors: no tile has so many.
Result<Tile> tile_of(const Attention& attention, int tensor_products);

}  // namespace kvjit::tool::sass
