// Decode's keys and values in shared memory, as bytes of the cache: each warp has a ring of stages, each for a tile of
// 16 keys, and issues copies to them several tiles ahead of their use.
#pragma once

#include "common/slots.h"
#include "cuda/attend/row_copy.h"
#include "cuda/attend/work.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/machine/contract.h"
#include "cuda/shape.h"

namespace kvjit {

/// A stage of the ring: keys, their scales, values, their scales.
struct Stage {
    static constexpr int kKeyStride = mma_key_stride(kFormat);
    static constexpr int kKeyScaleStride = mma_scale_stride(kFormat, mma_key_elements(kFormat));
    static constexpr int kValueStride = mma_value_stride(kFormat);
    static constexpr int kValueScaleStride = mma_scale_stride(kFormat, mma_value_elements(kFormat));
    static constexpr int kKeyScales = kMmaTileKeys * kKeyStride;
    static constexpr int kValues = kKeyScales + kMmaTileKeys * kKeyScaleStride;
    static constexpr int kValueScales = kValues + kMmaTileKeys * kValueStride;
    static constexpr int kBytes = kValueScales + kMmaTileKeys * kValueScaleStride;
    static_assert(kBytes == mma_stage_bytes(kFormat));

    char* at;

    KVJIT_INLINE char* keys() const { return at; }
    KVJIT_INLINE char* key_scales() const { return at + kKeyScales; }
    KVJIT_INLINE char* values() const { return at + kValues; }
    KVJIT_INLINE char* value_scales() const { return at + kValueScales; }
};

// ---- Addresses of a tile's rows ------------------------------------------------------------------------------------

/// Whether the keys of a tile always share a page, and so an entry of the table.
inline constexpr bool kTileInPage = kPageSize % kMmaTileKeys == 0;

/// The key whose entry the lane loads, in the tile that begins at key `begin`: the first one, or its own of the 16.
KVJIT_INLINE i64 entry_key(i64 begin) {
    return kTileInPage ? begin : begin + lane_index() % kMmaTileKeys;
}

/// The table's entry of that key; only entries of the block's keys are read.
KVJIT_INLINE PageEntry load_entry(const AttendWork& work, i64 begin) {
    const i64 key = entry_key(begin), end = kTileInPage ? begin + kMmaTileKeys : key + 1;
    return key < work.keys.end && (!kWindow || end > work.keys.begin) ? page_entry(work.table, key) : PageEntry{};
}

/// Issues copies of a tile's 16 rows of kBytes bytes to rows kStride apart, zeros for keys that aren't the block's.
/// The warp calls it together; `entry` is the one that the lane has loaded.
template <int kBytes, int kStride>
KVJIT_INLINE void copy_rows(char* to, const abi::Plane& plane, const AttendWork& work, i64 begin, i64 entry) {
    constexpr int kWidth = widest_access(kBytes), kAccesses = kBytes / kWidth, kAll = kMmaTileKeys * kAccesses;
    constexpr bool kStraight = kTileInPage && kWarpSize % kAccesses == 0;  // the lane's rows have a constant distance
    const u32 lane = static_cast<u32>(lane_index());
    const ShortRange keys = keys_of_tile<kMmaTileKeys>(work.keys, begin);
    const char* first_row = slot_address(plane, entry, token_in_page(entry_key(begin)), work.kv_head);
    const char* straight = first_row + lane / kAccesses * plane.token_stride + lane % kAccesses * kWidth;
#pragma unroll
    for (int first = 0; first < kAll; first += kWarpSize) {
        const i32 row = static_cast<i32>((first + lane) / kAccesses),
                  byte = static_cast<i32>((first + lane) % kAccesses) * kWidth;
        const char* from = straight;
        if constexpr (kTileInPage && !kStraight) from = first_row + row * plane.token_stride + byte;
        if constexpr (!kTileInPage) from = shuffle_address(first_row, row % kMmaTileKeys) + byte;
        if (kAll % kWarpSize == 0 || row < kMmaTileKeys)
            copy_bytes<kWidth>(to + row * kStride + byte, from, keys.holds(row));
        straight += kWarpSize / kAccesses * plane.token_stride;
    }
}

// ---- The ring ------------------------------------------------------------------------------------------------------

/// A warp's tiles 0, 1, ...: of the block's, those whose number, counted from key 0, is warp_index() modulo 4.
struct Ring {
    static constexpr int kStages = mma_stages(kFormat, kMaxSharedBytes);
    static constexpr int kPending = 2 * kStages - 2;  // groups that may be pending when the one before them is needed

    const AttendWork& work;
    char* stages;
    PageEntry entry;  // of the tile whose keys were issued last
    PageEntry next;   // of the tile whose keys are issued next

    KVJIT_INLINE i64 tile_begin(i32 tile) const {
        constexpr int kTurn = kAttendWarps * kMmaTileKeys;
        return first_tile_key<kTurn>(work) + tile * kTurn + warp_index() * kMmaTileKeys;
    }
    KVJIT_INLINE Stage stage(i32 tile) const { return {stages + static_cast<u32>(tile) % kStages * Stage::kBytes}; }
};

/// Issues the copies of a tile's keys, whose entry is ring.entry, as one group, empty past the last tile.
KVJIT_INLINE void issue_keys(const Ring& ring, i32 tile) {
    const i64 begin = ring.tile_begin(tile);
    const abi::Cache& cache = ring.work.args.cache;
    const Stage stage = ring.stage(tile);
    if (begin < ring.work.keys.end) {
        copy_rows<row_bytes(kFormat), Stage::kKeyStride>(stage.keys(), cache.key, ring.work, begin, ring.entry.codes);
        if constexpr (kQuantised)
            copy_rows<scale_row_bytes(kFormat), Stage::kKeyScaleStride>(stage.key_scales(), cache.key_scale, ring.work,
                                                                        begin, ring.entry.scales());
    }
    commit_copies();
}

/// The same for its values.
KVJIT_INLINE void issue_values(const Ring& ring, i32 tile) {
    const i64 begin = ring.tile_begin(tile);
    const abi::Cache& cache = ring.work.args.cache;
    const Stage stage = ring.stage(tile);
    if (begin < ring.work.keys.end) {
        copy_rows<row_bytes(kFormat), Stage::kValueStride>(stage.values(), cache.value, ring.work, begin,
                                                           ring.entry.codes);
        if constexpr (kQuantised)
            copy_rows<scale_row_bytes(kFormat), Stage::kValueScaleStride>(stage.value_scales(), cache.value_scale,
                                                                          ring.work, begin, ring.entry.scales());
    }
    commit_copies();
}

/// Whether rows in shared memory are longer than the cache's. Their further bytes are zeroed once and stay zero.
inline constexpr bool kPaddedRows = mma_key_elements(kFormat) != kHeadDim || mma_value_elements(kFormat) != kHeadDim;

KVJIT_INLINE void clear_ring(const Ring& ring) {
    const u32 zeros[4] = {0, 0, 0, 0};
    for (i32 at = lane_index() * 16; at < Ring::kStages * Stage::kBytes; at += kWarpSize * 16)
        store16(ring.stages + at, zeros);
    warp_barrier();
}

/// The ring of a warp before any copy is issued. Its first turn is for tile -kStages.
KVJIT_INLINE Ring start_ring(const AttendWork& work, char* stages) {
    const Ring ring = {work, stages, {}, {}};
    if constexpr (kPaddedRows) clear_ring(ring);
    return {work, stages, {}, load_entry(work, ring.tile_begin(0))};
}

/// Waits for the keys of `tile`, and issues values over those of the tile before it.
KVJIT_INLINE void wait_keys(Ring& ring, i32 tile) {
    wait_copies<Ring::kPending>();
    warp_barrier();
    if (tile + Ring::kStages > 0) issue_values(ring, tile + Ring::kStages - 1);
}

/// Waits for the values of `tile`, and issues keys over those of `tile`.
KVJIT_INLINE void wait_values(Ring& ring, i32 tile) {
    wait_copies<Ring::kPending>();
    warp_barrier();
    ring.entry = ring.next;
    ring.next = load_entry(ring.work, ring.tile_begin(tile + Ring::kStages + 1));
    issue_keys(ring, tile + Ring::kStages);
}

}  // namespace kvjit
