// Prefill's queries, keys and values in shared memory as warpgroups multiply them: in stripes of 64 elements
// (cuda/machine/warpgroup/contract.h). Two tiles of keys and two of values: while one is multiplied, the next is
// copied.
#pragma once

#include "cuda/attend/mma/prefill_block.h"
#include "cuda/attend/work.h"
#include "cuda/machine/contract.h"
#include "cuda/machine/warpgroup/contract.h"
#include "cuda/shape.h"

namespace kvjit {

static_assert(!kQuantised && kHeadDim % 64 == 0);

inline constexpr int kBlockWarps = kWarpgroups * kGroupWarps;
inline constexpr int kBlockThreads = kBlockWarps * kWarpSize;
inline constexpr int kBlockRows = kWarpgroupRows;
/// Keys of a tile: fewer with soft caps, whose code is long. Shared memory has room for as many as without.
inline constexpr int kBlockKeys = kSoftCap ? 64 : wgmma_prefill_keys(kFormat);
inline constexpr int kStripes = kHeadDim / 64;

/// Rows of head_dim elements.
template <int kRows>
struct alignas(kStripeAlignment) Stripes {
    static constexpr int kBytes = kRows * kStripeBytes;  // of a stripe
    char bytes[kStripes][kBytes];

    /// Where 16 bytes that begin at byte `byte` + 128 * stripe of a row lie.
    KVJIT_INLINE char* at(i32 row, i32 byte, int stripe) { return bytes[stripe] + swizzled_byte(row, byte); }
    /// Rows from row `row` on, a multiple of 8.
    KVJIT_INLINE SharedMatrix from(i32 row) const { return shared_matrix(bytes[0] + row * kStripeBytes, kBytes); }
    /// From a matrix that begins with column 0 to columns 16 * step on.
    static constexpr i32 to_columns(int step) { return step / 4 * kBytes + step % 4 * 32; }
};

struct WarpgroupTiles {
    Stripes<kBlockRows> query;
    Stripes<kBlockKeys> keys[2], values[2];    // of tiles of even and of odd number
    KeyAddresses addresses[3][kBlockKeys];     // of tiles by their number modulo 3
    alignas(16) Index entries[2][kBlockKeys];  // of tiles of even and of odd number
    RowTerms terms[kRowTerms ? kBlockRows : 1];
};

using BlockContext = BlockContextOf<kBlockWarps, kBlockRows>;

/// The tiles of keys that a block passes over: tile i has kBlockKeys keys from key `first` + i * kBlockKeys on. Splits
/// begin with a tile, at any multiple of kSplitUnit.
struct KeyTiles {
    ShortRange keys;  // the block's
    i32 first, count;

    KVJIT_INLINE explicit KeyTiles(KeyRange range) : keys(short_range(range)) {
        first = static_cast<i32>(range.begin) / kSplitUnit * kSplitUnit;
        const i32 length = keys.end - first;
        count = length > 0 ? (length + kBlockKeys - 1) / kBlockKeys : 0;
    }
    KVJIT_INLINE i32 begin(i32 tile) const { return first + tile * kBlockKeys; }
    /// The block's keys in a tile, counted from its first.
    KVJIT_INLINE ShortRange of_tile(i32 tile) const { return {keys.begin - begin(tile), keys.end - begin(tile)}; }
};

// ---- Copies ---------------------------------------------------------------------------------------------------------

/// Issues copies of the block's query rows; zeros for rows that don't exist.
KVJIT_INLINE void copy_query(WarpgroupTiles& tiles, const AttendWork& work) {
    copy_query_rows<kBlockRows, 2 * kHeadDim, kBlockThreads>(
        work, [&](i32 r, i32 byte) { return tiles.query.at(r, byte % kStripeBytes, byte / kStripeBytes); });
}

KVJIT_INLINE void sign_query(WarpgroupTiles& tiles, u32 sign) {
    sign_query_rows<kBlockRows, 2 * kHeadDim, kBlockThreads>(
        sign, [&](i32 r, i32 byte) { return tiles.query.at(r, byte % kStripeBytes, byte / kStripeBytes); });
}

KVJIT_INLINE void issue_entry(WarpgroupTiles& tiles, const TableRow& table, const KeyTiles& range, i32 tile) {
    issue_key_entry(tiles.entries[tile % 2], table, range.keys, range.begin(tile));
}

KVJIT_INLINE void store_addresses(WarpgroupTiles& tiles, const BlockContext& context, const KeyTiles& range, i32 tile) {
    store_key_addresses(tiles.addresses[tile % 3], tiles.entries[tile % 2], context, range.begin(tile));
}

/// Issues the copies of a tile's keys (kWhich 0) or values (1); none of a tile that has no key of the block.
template <int kWhich>
KVJIT_INLINE void issue_tile(WarpgroupTiles& tiles, const KeyTiles& range, i32 tile) {
    const ShortRange keys = range.of_tile(tile);
    if (!keys.meets_tile(kBlockKeys)) return;
    Stripes<kBlockKeys>& to = (kWhich ? tiles.values : tiles.keys)[tile % 2];
    copy_rows<kBlockKeys, kBlockThreads, kWhich, 2 * kHeadDim, 2 * kHeadDim>(
        tiles.addresses[tile % 3], keys,
        [&](i32 key, i32 byte, int part) { return to.at(key, byte, part / kStripeBytes); });
}

}  // namespace kvjit
