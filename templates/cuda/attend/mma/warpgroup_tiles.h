// Prefill's queries, keys and values in shared memory as warpgroups multiply them: in stripes of 64 elements
// (cuda/machine/warpgroup/contract.h). Two tiles of keys and two of values: while one is multiplied, the next is
// copied.
#pragma once

#include "common/slots.h"
#include "cuda/attend/mma/prefill_block.h"
#include "cuda/attend/row_copy.h"
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
    Stripes<kBlockKeys> keys[2], values[2];  // of tiles of even and of odd number
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

// ---- Copies of queries ----------------------------------------------------------------------------------------------

/// Issues copies of the block's query rows; zeros for rows that don't exist.
KVJIT_INLINE void copy_query(WarpgroupTiles& tiles, const AttendWork& work) {
    copy_query_rows<kBlockRows, 2 * kHeadDim, kBlockThreads>(
        work, [&](i32 r, i32 byte) { return tiles.query.at(r, byte % kStripeBytes, byte / kStripeBytes); });
}

KVJIT_INLINE void sign_query(WarpgroupTiles& tiles, u32 sign) {
    sign_query_rows<kBlockRows, 2 * kHeadDim, kBlockThreads>(
        sign, [&](i32 r, i32 byte) { return tiles.query.at(r, byte % kStripeBytes, byte / kStripeBytes); });
}

// ---- Copies of keys and values: the first warpgroup's warps have kWarpKeys keys of each tile, their lanes one of
// these

inline constexpr int kWarpKeys = kBlockKeys / kGroupWarps;

/// What a lane knows of its keys ahead of their copies. In registers: addresses that come from shared memory would be
/// waited for.
struct KeyCopies {
    Index entry = 0;              // of the lane's key in the tile whose keys come next
    const char* value = nullptr;  // the lane's row of the values that come next

    /// The lane's key in a tile, counted from the tile's first.
    KVJIT_INLINE static i32 own_key() { return warp_index() * kWarpKeys + opaque(lane_index()); }

    KVJIT_INLINE static bool holds(const KeyTiles& range, i32 tile) {
        return opaque(lane_index()) < kWarpKeys && range.of_tile(tile).holds(own_key());
    }

    /// The entry of the lane's key in a tile; 0 if that is none of the block's.
    KVJIT_INLINE static Index entry_of(const TableRow& table, const KeyTiles& range, i32 tile) {
        return holds(range, tile) ? *page_entry_at(table.codes, range.begin(tile) + own_key()) : Index{0};
    }
    KVJIT_INLINE void load_entry(const TableRow& table, const KeyTiles& range, i32 tile) {
        entry = entry_of(table, range, tile);
    }

    /// Issues the copies of the warp's keys in a tile, whose entries are loaded, and notes where their values are.
    /// cache: planes whose head 0 is the block's.
    KVJIT_INLINE void issue_keys(WarpgroupTiles& tiles, const abi::Cache& cache, const KeyTiles& range, i32 tile) {
        const i64 token = token_in_page(range.begin(tile) + own_key());
        value = slot_address(cache.value, entry, token, 0);
        issue_rows(tiles.keys[tile % 2], slot_address(cache.key, entry, token, 0), range, tile);
    }

    /// Issues the copies of the warp's values in the tile whose keys were the last to be copied.
    KVJIT_INLINE void issue_values(WarpgroupTiles& tiles, const KeyTiles& range, i32 tile) const {
        issue_rows(tiles.values[tile % 2], value, range, tile);
    }

    /// row: of the lane's key. Zeros for keys that aren't the block's; nothing of a tile that has none of them. 8 lanes
    /// share a row, whose places repeat every 8 rows.
    KVJIT_INLINE static void issue_rows(Stripes<kBlockKeys>& to, const char* row, const KeyTiles& range, i32 tile) {
        if (!range.of_tile(tile).meets_tile(kBlockKeys)) return;
        const u32 lane = static_cast<u32>(opaque(lane_index())), row_of_4 = lane / 8, byte = lane % 8 * 16;
        const u32 held = ballot(holds(range, tile)) >> row_of_4;
        char* const place[2] = {to.at(warp_index() * kWarpKeys + row_of_4, byte, 0),
                                to.at(warp_index() * kWarpKeys + 4 + row_of_4, byte, 0)};
#pragma unroll
        for (int first = 0; first < kWarpKeys; first += 4) {
            const char* from = shuffle_address(row, static_cast<i32>(first + row_of_4)) + byte;
#pragma unroll
            for (int stripe = 0; stripe < kStripes; ++stripe)
                copy_async<16>(place[first / 4 % 2] + (first / 8 * 8 * kStripeBytes + stripe * to.kBytes),
                               from + stripe * kStripeBytes, (held & 1u << first) != 0);
        }
    }
};

}  // namespace kvjit
