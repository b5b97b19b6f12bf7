#include "inspect/sass/tile.h"

#include <algorithm>
#include <string>

namespace kvjit::tool::sass {
namespace {

/// A warp's products of 16 rows, 8 columns and 16 steps for a tile of prefill: of its queries with `keys` keys, of
/// quantised ones with their residuals, too, and of its team's probabilities with its part of the values' columns.
int prefill_products(const CacheFormat& cache, int keys) {
    const int steps = round_up(cache.head_dim, 16) / 16;
    const int scores = mma_row_tiles(cache) * (keys / 8) * steps;
    const int team = mma_team_warps(cache);
    const int values = mma_team_matrices(cache) * round_up(2 * steps, 2 * team) / team * (keys / 16);
    return (cache.scale_bytes == 0 ? 1 : 2) * scores + values;
}

/// A warpgroup's, each of 16 steps: of its queries with all keys of the tile, and of its probabilities with up to 128
/// columns of the values.
int warpgroup_products(const CacheFormat& cache, int keys) {
    const int columns = cache.head_dim % 128 == 0 ? 128 : 64;
    return cache.head_dim / 16 + keys / 16 * (cache.head_dim / columns);
}

Result<int> prefill_keys(const Attention& attention, int tensor_products) {
    const CacheFormat& cache = attention.cache;
    const bool groups = attention.multiplier == Multiplier::kWarpgroups;
    const int most = groups ? wgmma_prefill_keys(cache) : mma_prefill_keys(cache, attention.max_shared_bytes);
    for (int keys = most; keys > 0; keys -= 16) {
        const int products = groups ? warpgroup_products(cache, keys) : prefill_products(cache, keys);
        if (products == tensor_products) return keys;
    }
    return fail(std::to_string(tensor_products) + " products are no tile of " + std::to_string(cache.head_dim) +
                " elements");
}

Result<int> keys_of(const Attention& attention, int tensor_products) {
    if (!attention.uses_tensor()) return dot_tile_keys(attention.is_decode, attention.cache);
    if (attention.is_decode) return mma_tile_keys(attention.cache, attention.max_shared_bytes);
    return prefill_keys(attention, tensor_products);
}

int prefill_rows(const Attention& attention) {
    if (attention.multiplier == Multiplier::kWarpgroups) return 16;
    return attention.uses_tensor() ? 16 * mma_row_tiles(attention.cache) : dot_warp_rows(false, attention.cache);
}

int decode_room(const Attention& attention) {
    return attention.uses_tensor() ? mma_decode_rows(attention.cache, attention.group) : kDecodeTileRows;
}

/// Decode computes dot products of `rows` rows in steps, those of cuda/attend/dot/tile.h.
int computed_rows(const Attention& attention, int rows, int room) {
    if (attention.uses_tensor() || !attention.is_decode) return room;
    return round_up(rows, attention.group <= 2 ? attention.group : 4);
}

int copying_threads(const Attention& attention) {
    if (attention.is_decode) return kWarpSize;
    const int warps = attention.multiplier == Multiplier::kWarpgroups ? kGroupWarps : kAttendWarps;
    return kWarpSize * warps;
}

int copied_row_bytes(const Attention& attention) {
    const CacheFormat& cache = attention.cache;
    const bool fills = attention.uses_tensor() && !attention.is_decode && cache.scale_bytes == 0;
    return fills ? round_up(cache.head_dim, 16) * cache.t2_bits / 8 : row_bytes(cache);
}

}  // namespace

std::int64_t Tile::copies_of_lane(int width) const {
    const std::int64_t bytes = std::int64_t{keys} * (width == row_access ? copied_row_bytes : copied_scale_bytes);
    const std::int64_t at_once = std::int64_t{width} * threads;
    return (bytes + at_once - 1) / at_once;
}

Result<Tile> tile_of(const Attention& attention, int tensor_products) {
    const Result<int> keys = keys_of(attention, tensor_products);
    if (!keys) return fail(keys.error());
    const CacheFormat& cache = attention.cache;
    const int rows = attention.is_decode ? std::min(attention.group, kDecodeTileRows) : prefill_rows(attention);
    const int room = attention.is_decode ? decode_room(attention) : rows;
    const int computed = computed_rows(attention, rows, room);
    const std::int64_t cached = row_bytes(cache) + scale_row_bytes(cache);
    return Tile{.keys = *keys,
                .rows = rows,
                .room = room,
                .computed_rows = computed,
                .value_products = std::int64_t{computed} * *keys * round_up(cache.head_dim, 64) / kWarpSize,
                .cache_bytes = 2 * *keys * cached,
                .operations = std::int64_t{4} * rows * *keys * cache.head_dim,
                .threads = copying_threads(attention),
                .row_access = widest_access(row_bytes(cache)),
                .copied_row_bytes = copied_row_bytes(attention),
                .copied_scale_bytes = scale_row_bytes(cache)};
}

}  // namespace kvjit::tool::sass
