// Decode's keys and values in shared memory, as bytes of the cache: each warp has a ring of stages, each for a tile of
// keys, and issues copies to them several tiles ahead of their use.
#pragma once

#include "common/slots.h"
#include "cuda/attend/row_copy.h"
#include "cuda/attend/work.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/machine/contract.h"
#include "cuda/shape.h"

namespace kvjit {

inline constexpr int kTileKeys = mma_tile_keys(kFormat, kMaxSharedBytes);

/// A stage of the ring: keys, their scales, values, their scales.
struct Stage {
    static constexpr int kKeyStride = mma_key_stride(kFormat);
    static constexpr int kKeyScaleStride = mma_scale_stride(kFormat, mma_key_elements(kFormat));
    static constexpr int kValueStride = mma_value_stride(kFormat);
    static constexpr int kValueScaleStride = mma_scale_stride(kFormat, mma_value_elements(kFormat));
    static constexpr int kKeyScales = kTileKeys * kKeyStride;
    static constexpr int kValues = kKeyScales + kTileKeys * kKeyScaleStride;
    static constexpr int kValueScales = kValues + kTileKeys * kValueStride;
    static constexpr int kBytes = kValueScales + kTileKeys * kValueScaleStride;
    static_assert(kBytes == kTileKeys * mma_key_bytes(kFormat));

    char* at;

    KVJIT_INLINE char* keys() const { return at; }
    KVJIT_INLINE char* key_scales() const { return at + kKeyScales; }
    KVJIT_INLINE char* values() const { return at + kValues; }
    KVJIT_INLINE char* value_scales() const { return at + kValueScales; }
};

// ---- Entries of the table ------------------------------------------------------------------------------------------

/// Whether the keys of a tile always share a page, and so an entry of the table.
inline constexpr bool kTileInPage = kPageSize % kTileKeys == 0;

/// What the tables have for a page, as it was loaded: to widen it is to wait for it.
template <bool kTwo>
struct LoadedEntryOf {
    Index codes = 0;

    template <class Row>
    KVJIT_INLINE static LoadedEntryOf of(const Row& row, i32 key) {
        return {*page_entry_at(row.codes, key)};
    }
    KVJIT_INLINE PageEntryOf<false> widened() const { return {codes}; }
};
template <>
struct LoadedEntryOf<true> {
    PageEntryOf<true> both = {0, 0};

    template <class Row>
    KVJIT_INLINE static LoadedEntryOf of(const Row& row, i32 key) {
        return {row.complete(*page_entry_at(row.codes, key), key)};
    }
    KVJIT_INLINE PageEntryOf<true> widened() const { return both; }
};
using LoadedEntry = LoadedEntryOf<kScaleTable>;

/// The key whose entry the lane loads, in the tile that begins at key `begin`: the first one, or its own.
KVJIT_INLINE i32 entry_key(i32 begin) {
    return kTileInPage ? begin : begin + lane_index() % kTileKeys;
}

/// Whether that key has the same place in its page in all of a warp's tiles.
inline constexpr bool kSteadyToken = kPageSize != 0 && kAttendWarps * kTileKeys % kPageDivisor == 0;

/// The table's entry of that key; only entries of the block's keys are read.
KVJIT_INLINE LoadedEntry load_entry(const AttendWork& work, i32 begin) {
    const ShortRange keys = short_range(work.keys);
    const i32 key = entry_key(begin), end = kTileInPage ? begin + kTileKeys : key + 1;
    return key < keys.end && (!kWindow || end > keys.begin) ? LoadedEntry::of(work.table, key) : LoadedEntry{};
}

// ---- Copies of a tile's rows ---------------------------------------------------------------------------------------

/// The warp's accesses to a tile's rows of kBytes bytes of a plane, which are copied to rows kStride apart.
template <int kBytes, int kStride>
struct RowAccesses {
    static constexpr int kWidth = widest_access(kBytes), kOfRow = kBytes / kWidth, kAll = kTileKeys * kOfRow;
    static constexpr int kOfLane = (kAll + kWarpSize - 1) / kWarpSize;
    static constexpr bool kAligned = kWarpSize % kOfRow == 0;  // a lane's accesses are in rows kRowStep apart
    static constexpr int kRowStep = kWarpSize / kOfRow;
    static constexpr bool kSteady = kTileInPage && kAligned;  // and at addresses with a constant distance

    /// The plane, its base moved to the lane's first access if kSteady, and to entry_key's place in its page if
    /// kSteadyToken.
    abi::Plane lane;

    /// `begin`: first key of one of the warp's tiles.
    KVJIT_INLINE static RowAccesses of(const abi::Plane& plane, const AttendWork& work, i32 begin) {
        const i64 token = kSteadyToken ? token_in_page(static_cast<u32>(entry_key(begin))) : 0;
        char* rows = slot_address(plane, 0, token + (kSteady ? row(0) : 0), work.kv_head);
        return {{rows + (kSteady ? byte(0) : 0), plane.page_stride, plane.token_stride, 0}};
    }

    KVJIT_INLINE static i32 row(int access) {
        return kAligned ? lane_index() / kOfRow + access * kRowStep : (access * kWarpSize + lane_index()) / kOfRow;
    }
    KVJIT_INLINE static i32 byte(int access) {
        return (kAligned ? lane_index() % kOfRow : (access * kWarpSize + lane_index()) % kOfRow) * kWidth;
    }
    KVJIT_INLINE static bool exists(int access) { return kAll % kWarpSize == 0 || row(access) < kTileKeys; }
    KVJIT_INLINE static char* place(char* tile, int access) {
        // The constant apart, so that it becomes part of the instruction.
        if constexpr (kAligned) return tile + (row(0) * kStride + byte(0)) + access * kRowStep * kStride;
        return tile + row(access) * kStride + byte(access);
    }

    /// f(access, from, valid) for the lane's accesses to the tile that begins at key `begin`; valid: the key is one of
    /// `keys`, which are counted from `begin`. The warp calls it together; `entry` is the one that the lane has loaded.
    template <class F>
    KVJIT_INLINE void for_each(i32 begin, i64 entry, ShortRange keys, F&& f) const {
        const i64 token = kSteadyToken ? 0 : token_in_page(static_cast<u32>(entry_key(begin)));
        const char* first = slot_address(lane, entry, token, 0);
        const ShortRange own = kAligned ? ShortRange{keys.begin - row(0), keys.end - row(0)} : keys;
#pragma unroll
        for (int access = 0; access < kOfLane; ++access) {
            const char* from = first;
            if constexpr (!kTileInPage)
                from = shuffle_address(first, row(access) % kTileKeys) + byte(access);
            else if constexpr (!kSteady)
                from = first + row(access) * lane.token_stride + byte(access);
            if (exists(access)) f(access, from, own.holds(kAligned ? access * kRowStep : row(access)));
            if constexpr (kSteady) first += kRowStep * lane.token_stride;
        }
    }
};

/// Copies of a plane's rows, of kBytes bytes each; of none without scales. In the background, unless rows are aligned
/// to 2 bytes only, which copy_async doesn't take: those are loaded, and stored when the warp has done other work.
template <int kBytes, int kStride>
struct RowCopies {
    using Accesses = RowAccesses<kBytes == 0 ? 16 : kBytes, kStride>;
    static constexpr bool kHeld = Accesses::kWidth < 4;

    Accesses accesses;
    char* to;  // kHeld: the tile that was loaded last
    u16 held[kHeld ? Accesses::kOfLane : 1];

    /// Begins to copy a tile's rows: accesses.for_each.
    KVJIT_INLINE void begin(char* tile, i32 first_key, i64 entry, ShortRange keys) {
        if constexpr (kBytes != 0) {
            to = tile;
            accesses.for_each(first_key, entry, keys, [&](int access, const char* from, bool valid) {
                if constexpr (kHeld)
                    held[access] = valid ? *reinterpret_cast<const u16*>(from) : u16{0};
                else
                    copy_async<Accesses::kWidth>(Accesses::place(tile, access), from, valid);
            });
        }
    }

    /// Stores what was loaded last.
    KVJIT_INLINE void finish() const {
        if constexpr (kHeld) {
#pragma unroll
            for (int access = 0; access < Accesses::kOfLane; ++access)
                if (Accesses::exists(access)) *reinterpret_cast<u16*>(Accesses::place(to, access)) = held[access];
        }
    }
};

/// The copies of a plane's rows, of tiles of which one begins at key `begin`, before the first: to finish them writes
/// zeros to `to`.
template <class Copies>
KVJIT_INLINE Copies start_copies(const abi::Plane& plane, const AttendWork& work, char* to, i32 begin) {
    return {Copies::Accesses::of(plane, work, begin), to, {}};
}

// ---- The ring ------------------------------------------------------------------------------------------------------

/// A warp's tiles: of the block's, every fourth, from number warp_index() on. They are counted from the block's first
/// key, with windows from key 0 (first_tile_key). The first turns, of tiles before the block's keys, only fill the
/// ring.
struct Ring {
    static constexpr int kStages = mma_stages(kFormat, kMaxSharedBytes);
    static constexpr int kPending = 2 * kStages - 2;  // groups that may be pending when the one before them is needed
    static constexpr i32 kTurn = kAttendWarps * kTileKeys;

    const AttendWork& work;
    char* stages;
    RowCopies<row_bytes(kFormat), Stage::kKeyStride> keys;
    RowCopies<scale_row_bytes(kFormat), Stage::kKeyScaleStride> key_scales;
    RowCopies<row_bytes(kFormat), Stage::kValueStride> values;
    RowCopies<scale_row_bytes(kFormat), Stage::kValueScaleStride> value_scales;
    LoadedEntry entry;  // of the tile whose keys were issued last
    LoadedEntry next;   // of the tile whose keys are issued next
    i32 origin;         // first key of the block's first tile
    i32 begin;          // first key of this turn's tile
    i32 place;          // of this turn's stage, in bytes
    i32 place_before;   // of the stage of the turn before

    KVJIT_INLINE bool is_filled() const { return begin >= origin; }
    KVJIT_INLINE bool has_more() const { return begin < static_cast<i32>(work.keys.end); }
    KVJIT_INLINE Stage stage() const { return {stages + place}; }
    KVJIT_INLINE Stage stage_before() const { return {stages + place_before}; }
    KVJIT_INLINE void advance() {
        begin += kTurn;
        place_before = place;
        place = place == (kStages - 1) * Stage::kBytes ? 0 : place + Stage::kBytes;
    }
};

/// Copies the rows and scales of the keys, or values, of the tile that begins at key `begin` as one group, empty if
/// there is no such tile. Copies that are held back are finished a turn later; with one stage at once, as the tile is
/// next.
template <class Rows, class Scales>
KVJIT_INLINE void issue_copies(const Ring& ring, Rows& rows, char* to, Scales& scales, char* scales_to, i32 begin) {
    scales.finish();
    if (begin >= ring.origin && begin < static_cast<i32>(ring.work.keys.end)) {
        const PageEntry entry = ring.entry.widened();
        const ShortRange all = short_range(ring.work.keys), keys = {all.begin - begin, all.end - begin};
        rows.begin(to, begin, entry.codes, keys);
        scales.begin(scales_to, begin, entry.scales(), keys);
    }
    if constexpr (Ring::kStages == 1) scales.finish();
    commit_copies();
}

/// Whether rows in shared memory are longer than the cache's. Their further bytes are zeroed once and stay zero.
inline constexpr bool kPaddedRows = mma_key_elements(kFormat) != kHeadDim || mma_value_elements(kFormat) != kHeadDim;

KVJIT_INLINE void clear_stages(char* stages) {
    const u32 zeros[4] = {0, 0, 0, 0};
    for (i32 at = lane_index() * 16; at < Ring::kStages * Stage::kBytes; at += kWarpSize * 16)
        store16(stages + at, zeros);
    warp_barrier();
}

/// The ring of a warp before any copy is issued.
KVJIT_INLINE Ring start_ring(const AttendWork& work, char* stages) {
    if constexpr (kPaddedRows) clear_stages(stages);
    const abi::Cache& cache = work.args.cache;
    const Stage first = {stages};
    const i32 origin = static_cast<i32>(first_tile_key<Ring::kTurn>(work)), begin = origin + warp_index() * kTileKeys;
    return {work,
            stages,
            start_copies<decltype(Ring::keys)>(cache.key, work, first.keys(), begin),
            start_copies<decltype(Ring::key_scales)>(cache.key_scale, work, first.key_scales(), begin),
            start_copies<decltype(Ring::values)>(cache.value, work, first.values(), begin),
            start_copies<decltype(Ring::value_scales)>(cache.value_scale, work, first.value_scales(), begin),
            {},
            load_entry(work, begin),
            origin,
            begin - Ring::kStages * Ring::kTurn,
            0,
            (Ring::kStages - 1) * Stage::kBytes};
}

/// Waits for the keys of this turn's tile, and issues values over those of the tile before it.
KVJIT_INLINE void wait_keys(Ring& ring) {
    wait_copies<Ring::kPending>();
    warp_barrier();
    const Stage stage = ring.stage_before();
    issue_copies(ring, ring.values, stage.values(), ring.value_scales, stage.value_scales(),
                 ring.begin + (Ring::kStages - 1) * Ring::kTurn);
}

/// Waits for the values of this turn's tile, and issues keys over its keys.
KVJIT_INLINE void wait_values(Ring& ring) {
    wait_copies<Ring::kPending>();
    warp_barrier();
    ring.entry = ring.next;
    ring.next = load_entry(ring.work, ring.begin + (Ring::kStages + 1) * Ring::kTurn);
    const Stage stage = ring.stage();
    issue_copies(ring, ring.keys, stage.keys(), ring.key_scales, stage.key_scales(),
                 ring.begin + Ring::kStages * Ring::kTurn);
}

}  // namespace kvjit
