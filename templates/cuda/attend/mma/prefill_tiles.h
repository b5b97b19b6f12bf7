// Prefill's queries, keys and values in shared memory, as T1, in rows an odd number of 16 bytes apart, so that
// load_matrices meets no bank conflict. Keys and values are copied there directly. Quantised ones are first
// copied as bytes of the cache, in the background, and then dequantised once for all rows of the block.
#pragma once

#include "common/slots.h"
#include "cuda/attend/mma/operands.h"
#include "cuda/attend/mma/softmax.h"
#include "cuda/attend/work.h"
#include "cuda/cache/row_lanes.h"
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

/// Addresses of a key's rows in the cache.
struct KeyAddresses {
    const char* rows[kQuantised ? 4 : 2];  // key, value, key scale, value scale
};

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

/// Keys that some, and that all, of a team's rows see.
struct KeyBounds {
    ShortRange some, all;
};

/// What the block works on. In shared memory, as it is needed rarely, and the sums take nearly all registers.
struct alignas(16) BlockContext {
    CallSequence sequence;
    TableRow table;
    i64 kv_head, row_begin, row_end;
    KeyRange keys;
    TileSplits splits;
    i32 reach_before;  // Reach::before, the same for all rows
    abi::Cache cache;  // planes whose head 0 is the block's kv head
    KeyBounds bounds[kAttendWarps];
    i32 seen_end[kBlockRows];  // of each row's keys; their begin is its position less reach_before
};

KVJIT_INLINE abi::Plane plane_of_head(abi::Plane plane, i64 head) {
    plane.base += head * plane.head_stride;
    return plane;
}

KVJIT_INLINE KeyBounds key_bounds_of_team(const AttendWork& work) {
    const i64 first = work.row_begin + warp_index() / kTeamWarps * kTeamRows, end = first + kTeamRows;
    if (first >= work.row_end) return {{0, 0}, {0, 0}};
    const i64 last = (end < work.row_end ? end : work.row_end) - 1;
    const ShortRange low = seen_by_row(work, first), high = seen_by_row(work, last);
    return {{low.begin, high.end}, {high.begin, low.end}};
}

/// Fills the context. The block calls it together, and a barrier must follow.
KVJIT_INLINE void save_context(BlockContext& context, PrefillTiles& tiles, const AttendWork& work) {
    const i32 r = opaque(thread_index());
    if (r < kBlockRows) context.seen_end[r] = seen_by_row(work, work.row_begin + r).end;
    if (kRowTerms && r < kBlockRows) tiles.terms[r] = terms_of_row(work, work.row_begin + r);
    if (lane_index() == 0) context.bounds[warp_index()] = key_bounds_of_team(work);
    if (r != 0) return;
    context.sequence = work.sequence;
    context.table = work.table;
    context.kv_head = work.kv_head;
    context.row_begin = work.row_begin;
    context.row_end = work.row_end;
    context.keys = work.keys;
    context.splits = work.splits;
    const i64 before = work.sequence.reach.before;
    context.reach_before = static_cast<i32>(before < abi::kMaxKeys ? before : abi::kMaxKeys);
    const abi::Cache& cache = work.args.cache;
    context.cache.key = plane_of_head(cache.key, work.kv_head);
    context.cache.value = plane_of_head(cache.value, work.kv_head);
    if constexpr (kQuantised) {
        context.cache.key_scale = plane_of_head(cache.key_scale, work.kv_head);
        context.cache.value_scale = plane_of_head(cache.value_scale, work.kv_head);
    }
}

KVJIT_INLINE AttendWork saved_work(const BlockContext& context, const abi::AttendArgs& args) {
    return {args,         context.sequence, context.table, context.kv_head, context.row_begin, context.row_end,
            context.keys, context.splits};
}

/// The lane's two rows in matrix m of the warp.
KVJIT_INLINE TileRows rows_of(const BlockContext& context, const PrefillTiles& tiles, int m) {
    const i32 thread = opaque(thread_index()), r = (thread / kWarpSize * kRowTiles + m) * 16 + thread % kWarpSize / 4;
    TileRows rows;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if constexpr (kRowTerms) rows.terms[h] = tiles.terms[r + 8 * h];
        rows.seen[h] = {0, context.seen_end[r + 8 * h]};
        if constexpr (kWindow) rows.seen[h].begin = rows.terms[h].position - context.reach_before;
    }
    return rows;
}

// ---- Queries -------------------------------------------------------------------------------------------------------

/// f(row, byte) for the thread's fragments of the block's query rows.
template <class F>
KVJIT_INLINE void for_each_query_fragment(F&& f) {
#pragma unroll 1
    for (i32 at = opaque(thread_index()); at < kBlockRows * kOperandFragments; at += kBlockThreads)
        f(at / kOperandFragments, at % kOperandFragments * 16);
}

/// Issues copies of the block's query rows; zeros for rows that don't exist, and past the last element.
KVJIT_INLINE void copy_query(PrefillTiles& tiles, const AttendWork& work) {
    for_each_query_fragment([&](i32 r, i32 byte) {
        const i64 row = work.row_begin + r;
        copy_async<16>(tiles.query[r] + byte, reinterpret_cast<const char*>(query_row(work, row)) + byte,
                       row < work.row_end && byte < 2 * kHeadDim);
    });
}

/// Gives the queries that the thread has copied the sign of the scale, once they have arrived.
KVJIT_INLINE void sign_query(PrefillTiles& tiles, u32 sign) {
    if (sign == 0) return;
    for_each_query_fragment([&](i32 r, i32 byte) {
        u32 words[4];
        load16(words, tiles.query[r] + byte);
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] ^= sign;
        store16(tiles.query[r] + byte, words);
    });
}

// ---- Addresses of keys: each of the block's first threads looks up one key of a tile, two tiles ahead --------------

/// Issues the copy of the table entry of the thread's key to shared memory, if the key is one of the block's.
KVJIT_INLINE void issue_entry(PrefillTiles& tiles, const TableRow& table, ShortRange keys, i32 tile) {
    const i32 thread = opaque(thread_index()), key = tile * kBlockKeys + thread;
    if (thread < kBlockKeys)
        copy_async<sizeof(Index)>(&tiles.entries[thread], page_entry_at(table.codes, key), keys.holds(key));
}

/// Stores the addresses of the thread's key of a tile, from its entry, which must have arrived.
KVJIT_INLINE void store_addresses(PrefillTiles& tiles, const BlockContext& context, i32 tile) {
    const i32 thread = opaque(thread_index()), key = tile * kBlockKeys + thread;
    if (thread >= kBlockKeys) return;
    const abi::Cache& cache = context.cache;
    // The entry of scale blocks is loaded only now: such caches are rare, and shared memory is scarce.
    const PageEntry entry = context.table.complete(tiles.entries[thread], key);
    const i64 token = token_in_page(key);
    KeyAddresses& to = tiles.addresses[tile % 2][thread];
    to.rows[0] = slot_address(cache.key, entry.codes, token, 0);
    to.rows[1] = slot_address(cache.value, entry.codes, token, 0);
    if constexpr (kQuantised) {
        to.rows[2] = slot_address(cache.key_scale, entry.scales(), token, 0);
        to.rows[3] = slot_address(cache.value_scale, entry.scales(), token, 0);
    }
}

/// f(key, byte) for the thread's accesses of kWidth bytes to the first kBytes bytes of a tile's rows, kUnrolled at a
/// time. The block calls it together.
template <int kWidth, int kBytes, int kUnrolled, class F>
KVJIT_INLINE void for_each_access(F&& f) {
    constexpr int kOfRow = kBytes / kWidth, kAll = kBlockKeys * kOfRow;
    const i32 thread = opaque(thread_index());
#pragma unroll kUnrolled
    for (int first = 0; first < kAll; first += kBlockThreads) {
        const u32 at = static_cast<u32>(first + thread);
        const i32 key = static_cast<i32>(at / kOfRow), byte = static_cast<i32>(at % kOfRow) * kWidth;
        if (kAll % kBlockThreads != 0 && key >= kBlockKeys) break;
        f(key, byte);
    }
}

/// Issues copies of a tile's rows of kBytes bytes, KeyAddresses::rows[kWhich], to rows kStride apart, of which kFilled
/// bytes are written: zeros for keys outside of `keys`, and past kBytes. Where rows allow it, 8 threads share one, so
/// that each loads an address for several copies.
template <int kWhich, int kBytes, int kFilled, int kStride>
KVJIT_INLINE void copy_tile_rows(char* to, const KeyAddresses* addresses, ShortRange keys) {
    constexpr int kWidth = widest_access(kBytes), kSpan = kFilled % (8 * kWidth) == 0 ? 8 * kWidth : kFilled;
    constexpr int kTurns = round_up(kBlockKeys * kSpan / kWidth, kBlockThreads) / kBlockThreads;
    constexpr int kUnrolled = (kTurns <= 4 ? 4 : 2) * kSpan / kFilled;
    for_each_access<kWidth, kSpan, (kUnrolled < 1 ? 1 : kUnrolled)>([&](i32 key, i32 byte) {
        const char* from = addresses[key].rows[kWhich] + byte;
        const bool valid = keys.holds(key);
#pragma unroll
        for (int part = 0; part < kFilled; part += kSpan)
            copy_async<kWidth>(to + key * kStride + byte + part, from + part, valid && byte + part < kBytes);
    });
}

/// The thread's scales, if threads hold them: loaded a tile ahead, and stored when they are needed.
struct HeldScales {
    static constexpr int kBytes = kHoldsScales ? scale_row_bytes(kFormat) : 2, kAll = kBlockKeys * kBytes / 2;
    static constexpr int kOfThread = kHoldsScales ? (kAll + kBlockThreads - 1) / kBlockThreads : 1;

    u16 keys[kOfThread], values[kOfThread];

    KVJIT_INLINE static void load(u16 (&to)[kOfThread], const KeyAddresses* addresses, int which, ShortRange keys) {
        int n = 0;
        for_each_access<2, kBytes, kOfThread>([&](i32 key, i32 byte) {
            const char* from = addresses[key].rows[which] + byte;
            to[n++] = keys.holds(key) ? *reinterpret_cast<const u16*>(from) : u16{0};
        });
    }
    KVJIT_INLINE static void store(RawTile& to, const u16 (&from)[kOfThread]) {
        int n = 0;
        for_each_access<2, kBytes, kOfThread>(
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

// ---- The pipeline of a tile ----------------------------------------------------------------------------------------

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
