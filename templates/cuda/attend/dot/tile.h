// Attention by dot products: tiles of keys or values in shared memory, as bytes of the cache, and their products.
#pragma once

#include "common/slots.h"
#include "cuda/attend/row_copy.h"
#include "cuda/attend/work.h"
#include "cuda/cache/elements.h"
#include "cuda/shape.h"

namespace kvjit {

/// A team is the warps that share tiles: one warp of a decode block, all warps of a prefill block.
template <bool kDecode>
struct DotShape {
    static constexpr int kKeys = dot_tile_keys(kDecode, kFormat);
    static constexpr int kLanesPerKey = kWarpSize / kKeys;
    static constexpr int kTeams = kDecode ? kAttendWarps : 1;
    static constexpr int kTeamWarps = kAttendWarps / kTeams;
    static constexpr int kWarpRows = dot_warp_rows(kDecode, kFormat);
    static constexpr int kTileRows = dot_tile_rows(kDecode, kFormat);
    static constexpr int kStride = dot_stride(row_bytes(kFormat));
    static constexpr int kScaleStride = dot_stride(scale_row_bytes(kFormat));
    static constexpr int kTileBytes = kKeys * (kStride + kScaleStride);  // rows, then their scales
};

/// A row of queries or of sums of values, and of the latter max and sum.
struct alignas(16) DotRow {
    float elements[kHeadDim];
    float running[2];
    float padding[2];
};
static_assert(sizeof(DotRow) == dot_row_stride(kFormat) * sizeof(float));

/// f(r) for the first `rows` of kRows rows, and for a few past them: by whole steps, which stop early for few rows
/// while r stays a constant, so that arrays indexed by it stay in registers.
template <bool kDecode, int kRows, class F>
KVJIT_INLINE void for_rows(i32 rows, F&& f) {
    constexpr int kStep = kDecode && kGroup <= 2 ? kGroup : 4;  // decode mostly has one token's rows
    static_assert(kRows % kStep == 0);
#pragma unroll
    for (int first = 0; first < kRows; first += kStep) {
        if (first >= rows) break;
#pragma unroll
        for (int r = first; r < first + kStep; ++r) f(r);
    }
}

// ---- Loading -------------------------------------------------------------------------------------------------------

/// Slot of the lane's key, number lane % kKeys of the tile. Keys that aren't the block's aren't looked up.
struct KeySlot {
    i64 first;  // the tile's first key
    PageEntry entry;
    i64 token;
};

template <bool kDecode>
KVJIT_INLINE KeySlot slot_of_lane(const AttendWork& work, i64 first) {
    const i64 key = first + lane_index() % DotShape<kDecode>::kKeys;
    const bool is_own = short_range(work.keys).holds(static_cast<i32>(key));
    return {first, is_own ? page_entry(work.table, key) : PageEntry{}, token_in_page(key)};
}

/// Issues copies of the tile's rows of kBytes bytes, zeros for keys outside of `keys`. own: the row of this lane's key.
template <bool kDecode, int kBytes, int kStride>
KVJIT_INLINE void copy_rows(char* to, const char* own, ShortRange keys) {
    using Shape = DotShape<kDecode>;
    constexpr int kPiece = widest_access(kBytes), kPieces = kBytes / kPiece;
    constexpr int kAll = Shape::kKeys * kPieces;
    static_assert(kPiece >= 2);
    const i32 warp = kDecode ? 0 : warp_index();
#pragma unroll 4
    for (i32 i = warp * kWarpSize; i < kAll; i += Shape::kTeamWarps * kWarpSize) {
        const i32 piece = i + lane_index(), key = piece / kPieces, at = piece % kPieces * kPiece;
        const char* row = shuffle_address(own, key % kWarpSize);
        if (piece < kAll) copy_bytes<kPiece>(to + key * kStride + at, row + at, keys.holds(key));
    }
}

/// Issues the copies of a tile of one plane, as one group, empty where the tile has none of the block's keys.
template <bool kDecode>
KVJIT_INLINE void copy_tile(const AttendWork& work, const abi::Plane& plane, const abi::Plane& scale, char* tile,
                            const KeySlot& slot) {
    using Shape = DotShape<kDecode>;
    const ShortRange keys = keys_of_tile<Shape::kKeys>(work.keys, slot.first);
    if (keys.meets_tile(Shape::kKeys)) {
        copy_rows<kDecode, row_bytes(kFormat), Shape::kStride>(
            tile, slot_address(plane, slot.entry.codes, slot.token, work.kv_head), keys);
        if constexpr (kQuantised)
            copy_rows<kDecode, scale_row_bytes(kFormat), Shape::kScaleStride>(
                tile + Shape::kKeys * Shape::kStride,
                slot_address(scale, slot.entry.scales(), slot.token, work.kv_head), keys);
    }
    commit_copies();
}

// ---- Multiplying ---------------------------------------------------------------------------------------------------

/// q·k of this lane's key with `rows` query rows in shared memory, float32. Where lanes share a key, each has a part of
/// the sum.
template <bool kDecode, int kRows>
KVJIT_INLINE void multiply_keys(float (&dot)[kRows], const DotRow* query, i32 rows, const char* tile) {
    using Shape = DotShape<kDecode>;
    constexpr int kPiece = 8;
    const i32 key = lane_index() % Shape::kKeys;
    const char* own = tile + key * Shape::kStride;
    const char* scales = tile + Shape::kKeys * Shape::kStride + key * Shape::kScaleStride;
#pragma unroll
    for (int r = 0; r < kRows; ++r) dot[r] = 0.0f;
#pragma unroll 1
    for (i32 d = lane_index() / Shape::kKeys * kPiece; d < kHeadDim; d += Shape::kLanesPerKey * kPiece) {
        float k[kPiece];
        load_cache(k, own, scales, d);
        for_rows<kDecode, kRows>(rows, [&](int r) {
            float q[kPiece];
            load_elements<float>(q, reinterpret_cast<const char*>(query[r].elements), d);
#pragma unroll
            for (int i = 0; i < kPiece; ++i) dot[r] = fma(q[i], k[i], dot[r]);
        });
    }
}

/// Loads this lane's elements of a value row; zeros, without reading it, unless `seen`.
KVJIT_INLINE void load_value(RowLanes& value, const char* row, const char* scales, bool seen) {
#pragma unroll
    for (int c = 0; c < kLanePairs; ++c) {
        const i32 d = pair_element(c);
        value.pair[c][0] = value.pair[c][1] = 0.0f;
        if (seen && d < kHeadDim) load_cache(value.pair[c], row, scales, d);
    }
}

/// acc[r] += probabilities times values, over the tile's first `keys` keys. seen, with masks: bit k is set if some row
/// sees key k.
template <bool kDecode, int kRows>
KVJIT_INLINE void add_values(RowLanes (&acc)[kRows], const float* probabilities, i32 rows, const char* tile, i32 keys,
                             u32 seen) {
    using Shape = DotShape<kDecode>;
    constexpr int kStep = 4;  // keys whose probabilities are one load
#pragma unroll 1
    for (i32 key = 0; key < keys; key += kStep) {
        RowLanes values[kStep];
#pragma unroll
        for (int k = 0; k < kStep; ++k)
            load_value(values[k], tile + (key + k) * Shape::kStride,
                       tile + Shape::kKeys * Shape::kStride + (key + k) * Shape::kScaleStride,
                       kMaskRank == 0 || (seen >> (key + k) & 1));
        for_rows<kDecode, kRows>(rows, [&](int r) {
            float p[kStep];
            load_elements<float>(p, reinterpret_cast<const char*>(probabilities + r * Shape::kKeys), key);
#pragma unroll
            for (int k = 0; k < kStep; ++k) {
#pragma unroll
                for (int c = 0; c < kLanePairs; ++c) {
                    acc[r].pair[c][0] = fma(p[k], values[k].pair[c][0], acc[r].pair[c][0]);
                    acc[r].pair[c][1] = fma(p[k], values[k].pair[c][1], acc[r].pair[c][1]);
                }
            }
        });
    }
}

}  // namespace kvjit
