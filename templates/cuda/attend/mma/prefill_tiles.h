// Prefill's queries, keys and values in shared memory, as T1, in rows an odd number of 16 bytes apart, so that
// load_matrices meets no bank conflict. Keys and values are copied there directly. Quantised ones are first
// copied as bytes of the cache, in the background, and then dequantised once for all rows of the block.
#pragma once

#include "cuda/attend/mma/key_addresses.h"
#include "cuda/attend/mma/operands.h"
#include "cuda/attend/mma/prefill_block.h"
#include "cuda/attend/work.h"
#include "cuda/machine/contract.h"
#include "cuda/shape.h"

namespace kvjit {

inline constexpr int kBlockThreads = kAttendWarps * kWarpSize;
inline constexpr int kTeamWarps = mma_team_warps(kFormat);
inline constexpr int kRowTiles = mma_row_tiles(kFormat);  // matrices of 16 rows that a warp scores
inline constexpr int kTeamMatrices = mma_team_matrices(kFormat);
inline constexpr int kTeamRows = 16 * kTeamMatrices;
static_assert(kTeamWarps == 1 || kRowTiles == 1);
inline constexpr int kBlockRows = mma_prefill_rows(kFormat);
/// Whether scales lie in rows that are aligned to 2 bytes only, which copy_async doesn't take: threads hold them.
inline constexpr bool kHoldsScales = kQuantised && scale_row_bytes(kFormat) % 4 != 0;
/// Keys of a tile: fewer with masks, whose terms take registers, with soft caps, whose code is long, and with many
/// scales that threads hold.
inline constexpr int kMostKeys = mma_prefill_keys(kFormat, kMaxSharedBytes);
inline constexpr bool kManyTerms = kMaskRank > 0 || kSoftCap || (kHoldsScales && scale_row_bytes(kFormat) > 16);
inline constexpr int kBlockKeys = kManyTerms && kMostKeys > 32 ? 32 : kMostKeys;
inline constexpr int kOperandStride = mma_row_stride(kFormat);
inline constexpr int kOperandFragments = round_up(kHeadDim, 16) / kFragment;  // of a row; the last may be zeros

/// A tile of keys or values with their scales, as bytes of the cache; unused unless these are quantised.
struct alignas(16) RawTile {
    static constexpr int kKeys = kQuantised ? kBlockKeys : 1;
    static constexpr int kStride = kQuantised ? round_up(row_bytes(kFormat), 16) : 16;
    static constexpr int kScaleStride = kQuantised ? round_up(scale_row_bytes(kFormat), 16) : 16;
    char rows[kKeys][kStride];
    char scales[kKeys][kScaleStride];
};

/// What the values of a tile are multiplied by, of a warp's 16 rows, for its team; unused where that is one warp.
struct alignas(16) SharedWeights {
    static constexpr bool kUsed = kTeamWarps > 1;
    u32 probabilities[kUsed ? kBlockKeys / 16 : 1][kUsed ? kWarpSize : 1][4];  // of each lane, as left operands
    float rescale[kUsed ? 16 : 1];                                             // of the running sums
    u32 seen[kUsed && kMaskRank > 0 ? kBlockKeys / 8 : 1][4];                  // seen_pair, of the first 4 lanes
};

struct alignas(16) PrefillTiles {
    char query[kBlockRows][kOperandStride];
    char keys[kBlockKeys][kOperandStride];
    char key_residuals[kQuantised ? kBlockKeys : 1][kOperandStride];  // what rounding took from keys
    char values[kBlockKeys][kOperandStride];
    KeyAddresses addresses[2][kBlockKeys];  // of tiles of even and of odd number
    alignas(16) Index entries[kBlockKeys];  // of the tile whose addresses are stored next
    RawTile raw_keys, raw_values;
    RowTerms terms[kRowTerms ? kBlockRows : 1];
    SharedWeights weights[SharedWeights::kUsed ? kAttendWarps : 1];
};

using BlockContext = BlockContextOf<kAttendWarps, kBlockRows>;

/// Fills the context. The block calls it together, and a barrier must follow.
KVJIT_INLINE void save_context(BlockContext& context, PrefillTiles& tiles, const AttendWork& work) {
    save_context(context, tiles.terms, work,
                 [&] { return key_bounds(work, warp_index() / kTeamWarps * kTeamRows, kTeamRows); });
}

/// The lane's two rows in matrix m of the warp.
KVJIT_INLINE TileRows rows_of(const BlockContext& context, const PrefillTiles& tiles, int m) {
    const i32 thread = opaque(thread_index());
    return rows_from(context, tiles.terms, (thread / kWarpSize * kRowTiles + m) * 16 + thread % kWarpSize / 4);
}

// ---- Queries --------------------------------------------------------------------------------------------------------

inline constexpr int kOperandBytes = kOperandFragments * 16;

/// Issues copies of the block's query rows; zeros for rows that don't exist, and past the last element.
KVJIT_INLINE void copy_query(PrefillTiles& tiles, const AttendWork& work) {
    copy_query_rows<kBlockRows, kOperandBytes, kBlockThreads>(work,
                                                              [&](i32 r, i32 byte) { return tiles.query[r] + byte; });
}

/// Gives the queries that the thread has copied the sign of the scale, once they have arrived.
KVJIT_INLINE void sign_query(PrefillTiles& tiles, u32 sign) {
    sign_query_rows<kBlockRows, kOperandBytes, kBlockThreads>(sign,
                                                              [&](i32 r, i32 byte) { return tiles.query[r] + byte; });
}

// ---- Addresses of keys: looked up two tiles ahead -------------------------------------------------------------------

KVJIT_INLINE void issue_entry(PrefillTiles& tiles, const TableRow& table, ShortRange keys, i32 tile) {
    issue_key_entry(tiles.entries, table, keys, tile * kBlockKeys);
}

KVJIT_INLINE void store_addresses(PrefillTiles& tiles, const BlockContext& context, i32 tile) {
    store_key_addresses(tiles.addresses[tile % 2], tiles.entries, context, tile * kBlockKeys);
}

/// Issues copies of a tile's rows to rows kStride apart.
template <int kWhich, int kBytes, int kFilled, int kStride>
KVJIT_INLINE void copy_tile_rows(char* to, const KeyAddresses* addresses, ShortRange keys) {
    copy_rows<kBlockKeys, kBlockThreads, kWhich, kBytes, kFilled>(
        addresses, keys, [&](i32 key, i32 byte, int part) { return to + key * kStride + byte + part; });
}

/// The thread's scales, if threads hold them: loaded a tile ahead, and stored when they are needed.
struct HeldScales {
    static constexpr int kBytes = kHoldsScales ? scale_row_bytes(kFormat) : 2, kAll = kBlockKeys * kBytes / 2;
    static constexpr int kOfThread = kHoldsScales ? (kAll + kBlockThreads - 1) / kBlockThreads : 1;

    u16 keys[kOfThread], values[kOfThread];

    KVJIT_INLINE static void load(u16 (&to)[kOfThread], const KeyAddresses* addresses, int which, ShortRange keys) {
        int n = 0;
        for_each_access<kBlockKeys, kBlockThreads, 2, kBytes, kOfThread>([&](i32 key, i32 byte) {
            const char* from = addresses[key].rows[which] + byte;
            to[n++] = keys.holds(key) ? *reinterpret_cast<const u16*>(from) : u16{0};
        });
    }
    KVJIT_INLINE static void store(RawTile& to, const u16 (&from)[kOfThread]) {
        int n = 0;
        for_each_access<kBlockKeys, kBlockThreads, 2, kBytes, kOfThread>(
            [&](i32 key, i32 byte) { *reinterpret_cast<u16*>(to.scales[key] + byte) = from[n++]; });
    }
};

/// Issues the copies of a tile's quantised rows and scales, KeyAddresses::rows[kWhich] and [2 + kWhich].
template <int kWhich>
KVJIT_INLINE void copy_raw_tile(RawTile& raw, u16 (&held)[HeldScales::kOfThread], const KeyAddresses* addresses,
                                ShortRange keys) {
    constexpr int kBytes = row_bytes(kFormat), kScales = scale_row_bytes(kFormat);
    copy_tile_rows<kWhich, kBytes, kBytes, RawTile::kStride>(raw.rows[0], addresses, keys);
    if constexpr (kHoldsScales)
        HeldScales::load(held, addresses, 2 + kWhich, keys);
    else
        copy_tile_rows<2 + kWhich, kScales, kScales, RawTile::kScaleStride>(raw.scales[0], addresses, keys);
}

/// Issues the copies of a tile's keys (kWhich 0) or values (1), as bytes of the cache, as one group.
template <int kWhich>
KVJIT_INLINE void issue_tile(PrefillTiles& tiles, HeldScales& held, ShortRange block, i32 tile) {
    const KeyAddresses* addresses = tiles.addresses[tile % 2];
    const ShortRange keys = {block.begin - tile * kBlockKeys, block.end - tile * kBlockKeys};
    if (keys.meets_tile(kBlockKeys)) {
        if constexpr (kQuantised)
            copy_raw_tile<kWhich>(kWhich ? tiles.raw_values : tiles.raw_keys, kWhich ? held.values : held.keys,
                                  addresses, keys);
        else
            copy_tile_rows<kWhich, row_bytes(kFormat), kOperandFragments * 16, kOperandStride>(
                (kWhich ? tiles.values : tiles.keys)[0], addresses, keys);
    }
    commit_copies();
}

/// f(key, fragment) for all fragments of a tile's rows, one thread for each.
template <class F>
KVJIT_INLINE void for_each_fragment(F&& f) {
#pragma unroll 1  // the sums leave no registers for more
    for (i32 at = opaque(thread_index()); at < kBlockKeys * kOperandFragments; at += kBlockThreads)
        f(at / kOperandFragments, at % kOperandFragments);
}

/// Dequantises the raw tile to rows of T1, of keys with their residuals.
KVJIT_INLINE void dequantise_keys(PrefillTiles& tiles) {
    for_each_fragment([&](i32 key, i32 fragment) {
        KeyPairs pairs = {};
        if (fragment * kFragment < kHeadDim)
            load_ordered_pairs(pairs, tiles.raw_keys.rows[key], tiles.raw_keys.scales[key], fragment * kFragment);
        store16(tiles.keys[key] + fragment * 16, pairs.high);
        store16(tiles.key_residuals[key] + fragment * 16, pairs.low);
    });
}
KVJIT_INLINE void dequantise_values(PrefillTiles& tiles) {
    for_each_fragment([&](i32 key, i32 fragment) {
        u32 pairs[4] = {0, 0, 0, 0};
        if (fragment * kFragment < kHeadDim)
            load_ordered_pairs(pairs, tiles.raw_values.rows[key], tiles.raw_values.scales[key], fragment * kFragment);
        store16(tiles.values[key] + fragment * 16, pairs);
    });
}

/// Waits for the warps of the team.
KVJIT_INLINE void team_barrier() {
    if constexpr (kTeamWarps == 1)
        warp_barrier();
    else
        barrier();
}

// ---- The pipeline of a tile -----------------------------------------------------------------------------------------

/// Waits for the tile's keys, in a quantised cache for its values too, and issues the copies that come next.
KVJIT_INLINE void wait_keys(PrefillTiles& tiles, HeldScales& held, const BlockContext& context, i32 tile) {
    const ShortRange keys = short_range(context.keys);
    wait_copies<0>();
    if constexpr (kHoldsScales) {
        HeldScales::store(tiles.raw_keys, held.keys);
        HeldScales::store(tiles.raw_values, held.values);
    }
    store_addresses(tiles, context, tile + 1);
    issue_entry(tiles, context.table, keys, tile + 2);
    barrier();
    if constexpr (kQuantised) {
        dequantise_keys(tiles);
        dequantise_values(tiles);
        barrier();
        issue_tile<0>(tiles, held, keys, tile + 1);
        issue_tile<1>(tiles, held, keys, tile + 1);
    } else {
        issue_tile<1>(tiles, held, keys, tile);
    }
}

/// Waits for the tile's values and the team's weights, and issues the copies of the next tile's keys over the tile's
/// own.
KVJIT_INLINE void wait_values(PrefillTiles& tiles, HeldScales& held, const BlockContext& context, i32 tile) {
    if constexpr (kQuantised) {
        team_barrier();
    } else {
        wait_copies<0>();
        barrier();
        issue_tile<0>(tiles, held, short_range(context.keys), tile + 1);
    }
}

}  // namespace kvjit
