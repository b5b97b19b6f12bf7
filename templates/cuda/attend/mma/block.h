// The way of a prefill's queries, keys and values into shared memory, as float16: rows an odd number of 16 bytes apart,
// which is what load_matrices likes. Plain keys and values go there at once. Quantised ones come as bytes of the cache,
// in the background, and are dequantised once for all rows of the block.
#pragma once

#include "common/slots.h"
#include "cuda/attend/mma/fragments.h"
#include "cuda/attend/mma/tile.h"
#include "cuda/attend/row_copy.h"
#include "cuda/attend/work.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/machine/contract.h"
#include "cuda/shape.h"

namespace kvjit {

inline constexpr int kBlockThreads = kAttendWarps * kWarpSize;
inline constexpr int kRowTiles = mma_row_tiles(kFormat);  // of 16 rows, that a warp has
inline constexpr int kBlockRows = mma_prefill_rows(kFormat);
/// Keys of a tile: few where scores are modified, since what they depend on takes registers too.
inline constexpr int kMostKeys = mma_prefill_keys(kFormat, kMaxSharedBytes);
inline constexpr int kBlockKeys = kModified && kMostKeys > 32 ? 32 : kMostKeys;
inline constexpr int kHalfStride = mma_row_stride(kFormat);
inline constexpr int kHalfPieces = round_up(kHeadDim, 16) / kPiece;  // of a row, the last may be zeros

/// What has to be known of a key to copy it.
struct KeyAddresses {
    const char* rows[kQuantised ? 4 : 2];  // key, value, key scale, value scale
};

/// Keys or values with their scales, as the cache has them; next to nothing where none are quantised.
struct alignas(16) RawTile {
    static constexpr int kKeys = kQuantised ? kBlockKeys : 1;
    static constexpr int kStride = kQuantised ? round_up(row_bytes(kFormat), 16) : 16;
    static constexpr int kScaleStride = kQuantised ? round_up(scale_row_bytes(kFormat), 16) : 16;
    char rows[kKeys][kStride];
    char scales[kKeys][kScaleStride];
};

struct alignas(16) PrefillTiles {
    char query[kBlockRows][kHalfStride];
    char keys[kBlockKeys][kHalfStride];
    char key_rests[kQuantised ? kBlockKeys : 1][kHalfStride];  // what rounding took from keys
    char values[kBlockKeys][kHalfStride];
    KeyAddresses addresses[2][kBlockKeys];  // of tiles of even and odd number
    alignas(16) Index entries[kBlockKeys];  // of the tile behind those
    RawTile raw_keys, raw_values;
    RowTerms terms[kRowTerms ? kBlockRows : 1];
};

/// Keys that some and that all of a warp's rows see.
struct Sight {
    ShortRange some, all;
};

/// What the block works on, in shared memory: it is needed seldom, and the sums take nearly all registers.
struct alignas(16) Kept {
    CallSequence sequence;
    TableRow table;
    i64 kv_head, row_begin, row_end;
    KeyRange keys;
    float* partials;
    i32 reach_before;  // of all rows
    abi::Cache cache;  // of the block's kv head: its planes' head 0
    Sight sight[kAttendWarps];
    i32 seen_end[kBlockRows];  // where a row's keys begin follows from its position
};

KVJIT_INLINE abi::Plane plane_of_head(abi::Plane plane, i64 head) {
    plane.base += head * plane.head_stride;
    return plane;
}

KVJIT_INLINE Sight sight_of_warp(const AttendWork& work) {
    const i64 first = work.row_begin + warp_index() * (16 * kRowTiles), behind = first + 16 * kRowTiles;
    if (first >= work.row_end) return {{0, 0}, {0, 0}};
    const i64 last = (behind < work.row_end ? behind : work.row_end) - 1;
    const ShortRange low = seen_by_row(work, first), high = seen_by_row(work, last);
    return {{low.begin, high.end}, {high.begin, low.end}};
}

/// The block calls it together; a barrier is to follow.
KVJIT_INLINE void keep(Kept& kept, PrefillTiles& tiles, const AttendWork& work) {
    const i32 r = thread_index();
    if (r < kBlockRows) kept.seen_end[r] = seen_by_row(work, work.row_begin + r).end;
    if (kRowTerms && r < kBlockRows) tiles.terms[r] = terms_of_row(work, work.row_begin + r);
    if (lane_index() == 0) kept.sight[warp_index()] = sight_of_warp(work);
    if (r != 0) return;
    kept.sequence = work.sequence;
    kept.table = work.table;
    kept.kv_head = work.kv_head;
    kept.row_begin = work.row_begin;
    kept.row_end = work.row_end;
    kept.keys = work.keys;
    kept.partials = work.partials;
    const i64 before = work.sequence.reach.before;
    kept.reach_before = static_cast<i32>(before < abi::kMaxKeys ? before : abi::kMaxKeys);
    const abi::Cache& cache = work.args.cache;
    kept.cache.key = plane_of_head(cache.key, work.kv_head);
    kept.cache.value = plane_of_head(cache.value, work.kv_head);
    if constexpr (kQuantised) {
        kept.cache.key_scale = plane_of_head(cache.key_scale, work.kv_head);
        kept.cache.value_scale = plane_of_head(cache.value_scale, work.kv_head);
    }
}

KVJIT_INLINE AttendWork kept_work(const Kept& kept, const abi::AttendArgs& args) {
    return {args, kept.sequence, kept.table, kept.kv_head, kept.row_begin, kept.row_end, kept.keys, kept.partials};
}

/// Rows of matrix m of the warp.
KVJIT_INLINE TileRows kept_rows(const Kept& kept, const PrefillTiles& tiles, int m) {
    const i32 thread = opaque(thread_index()), r = (thread / kWarpSize * kRowTiles + m) * 16 + thread % kWarpSize / 4;
    TileRows rows;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if constexpr (kRowTerms) rows.terms[h] = tiles.terms[r + 8 * h];
        rows.seen[h] = {0, kept.seen_end[r + 8 * h]};
        if constexpr (kWindow) rows.seen[h].begin = rows.terms[h].position - kept.reach_before;
    }
    return rows;
}

// ---- Queries -------------------------------------------------------------------------------------------------------

/// All query rows of the block; zeros for those that aren't there, and behind the last element.
KVJIT_INLINE void load_query(PrefillTiles& tiles, const AttendWork& work) {
    const u32 sign = query_sign(work);
#pragma unroll 4
    for (i32 at = thread_index(); at < kBlockRows * kHalfPieces; at += kBlockThreads) {
        const i32 r = at / kHalfPieces, piece = at % kHalfPieces;
        u32 words[4] = {0, 0, 0, 0};
        if (work.row_begin + r < work.row_end && piece * kPiece < kHeadDim)
            load16(words, query_row(work, work.row_begin + r) + piece * kPiece);
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] ^= sign;
        store16(tiles.query[r] + piece * 16, words);
    }
}

// ---- Where keys lie: each of the block's first threads looks up one key of a tile, two tiles ahead -----------------

/// Begins to copy the entry of the thread's key to shared memory, if the key is one of the block's.
KVJIT_INLINE void look_up_key(PrefillTiles& tiles, const TableRow& table, ShortRange keys, i32 tile) {
    const i32 thread = opaque(thread_index()), key = tile * kBlockKeys + thread;
    if (thread < kBlockKeys)
        copy_async<sizeof(Index)>(&tiles.entries[thread], page_entry_at(table.codes, key), keys.holds(key));
}

/// What the thread has looked up for a tile, and waited for, becomes addresses.
KVJIT_INLINE void leave_addresses(PrefillTiles& tiles, const Kept& kept, i32 tile) {
    const i32 thread = opaque(thread_index()), key = tile * kBlockKeys + thread;
    if (thread >= kBlockKeys) return;
    const abi::Cache& cache = kept.cache;
    // Scale blocks are looked up only now: such caches are rare, and shared memory is scarce.
    const PageEntry entry = kept.table.complete(tiles.entries[thread], key);
    const i64 token = token_in_page(key);
    KeyAddresses& to = tiles.addresses[tile % 2][thread];
    to.rows[0] = slot_address(cache.key, entry.codes, token, 0);
    to.rows[1] = slot_address(cache.value, entry.codes, token, 0);
    if constexpr (kQuantised) {
        to.rows[2] = slot_address(cache.key_scale, entry.scales(), token, 0);
        to.rows[3] = slot_address(cache.value_scale, entry.scales(), token, 0);
    }
}

/// Begins to copy rows of kBytes of one plane, the kWhich-th of KeyAddresses, to rows kStride apart, of which kFilled
/// bytes are used. Zeros for keys that aren't among `keys`, and behind kBytes. The block calls it together.
template <int kWhich, int kBytes, int kFilled, int kStride>
KVJIT_INLINE void copy_tile_rows(char* to, const KeyAddresses* addresses, ShortRange keys) {
    constexpr int kWidth = natural_piece(kBytes), kPieces = kFilled / kWidth, kAll = kBlockKeys * kPieces;
    const i32 thread = opaque(thread_index());
#pragma unroll 4
    for (int first = 0; first < kAll; first += kBlockThreads) {
        const u32 at = static_cast<u32>(first + thread);
        const i32 key = static_cast<i32>(at / kPieces), byte = static_cast<i32>(at % kPieces) * kWidth;
        if (kAll % kBlockThreads != 0 && key >= kBlockKeys) break;
        copy_piece<kWidth>(to + key * kStride + byte, addresses[key].rows[kWhich] + byte,
                           keys.holds(key) && byte < kBytes);
    }
}

/// Begins to copy the keys (kWhich 0) or values (1) of a tile, as the cache has them.
template <int kWhich>
KVJIT_INLINE void ask_for_tile(PrefillTiles& tiles, ShortRange block, i32 tile) {
    const KeyAddresses* addresses = tiles.addresses[tile % 2];
    const ShortRange keys = {block.begin - tile * kBlockKeys, block.end - tile * kBlockKeys};
    if (keys.meets_tile(kBlockKeys)) {
        constexpr int kBytes = row_bytes(kFormat), kScales = scale_row_bytes(kFormat);
        if constexpr (kQuantised) {
            RawTile& raw = kWhich == 0 ? tiles.raw_keys : tiles.raw_values;
            copy_tile_rows<kWhich, kBytes, kBytes, RawTile::kStride>(raw.rows[0], addresses, keys);
            copy_tile_rows<2 + kWhich, kScales, kScales, RawTile::kScaleStride>(raw.scales[0], addresses, keys);
        } else {
            copy_tile_rows<kWhich, kBytes, kHalfPieces * 16, kHalfStride>((kWhich ? tiles.values : tiles.keys)[0],
                                                                          addresses, keys);
        }
    }
    commit_copies();
}

/// f(key, piece) for the pieces of a tile's rows, each by one thread.
template <class F>
KVJIT_INLINE void for_each_piece(F&& f) {
#pragma unroll 1  // the sums leave no registers for more
    for (i32 at = opaque(thread_index()); at < kBlockKeys * kHalfPieces; at += kBlockThreads)
        f(at / kHalfPieces, at % kHalfPieces);
}

/// The raw tile as float16.
KVJIT_INLINE void dequantise_keys(PrefillTiles& tiles) {
    for_each_piece([&](i32 key, i32 piece) {
        KeyPairs pairs = {};
        if (piece * kPiece < kHeadDim)
            load_ordered_pairs(pairs, tiles.raw_keys.rows[key], tiles.raw_keys.scales[key], piece * kPiece);
        store16(tiles.keys[key] + piece * 16, pairs.high);
        store16(tiles.key_rests[key] + piece * 16, pairs.low);
    });
}
KVJIT_INLINE void dequantise_values(PrefillTiles& tiles) {
    for_each_piece([&](i32 key, i32 piece) {
        u32 pairs[4] = {0, 0, 0, 0};
        if (piece * kPiece < kHeadDim)
            load_ordered_pairs(pairs, tiles.raw_values.rows[key], tiles.raw_values.scales[key], piece * kPiece);
        store16(tiles.values[key] + piece * 16, pairs);
    });
}

// ---- A tile's turn -------------------------------------------------------------------------------------------------

/// Waits for the tile's keys, of a quantised cache for its values too, and asks for what comes next.
KVJIT_INLINE void await_keys(PrefillTiles& tiles, const Kept& kept, i32 tile) {
    const ShortRange keys = short_range(kept.keys);
    wait_copies<0>();
    leave_addresses(tiles, kept, tile + 1);
    look_up_key(tiles, kept.table, keys, tile + 2);
    barrier();
    if constexpr (kQuantised) {
        dequantise_keys(tiles);
        dequantise_values(tiles);
        barrier();
        ask_for_tile<0>(tiles, keys, tile + 1);
        ask_for_tile<1>(tiles, keys, tile + 1);
    } else {
        ask_for_tile<1>(tiles, keys, tile);
    }
}

/// Waits for its values, and asks for the keys that take the place of its own.
KVJIT_INLINE void await_values(PrefillTiles& tiles, const Kept& kept, i32 tile) {
    if constexpr (kQuantised) {
        warp_barrier();  // there are no registers for what could be fetched before
    } else {
        wait_copies<0>();
        barrier();
        ask_for_tile<0>(tiles, short_range(kept.keys), tile + 1);
    }
}

}  // namespace kvjit
