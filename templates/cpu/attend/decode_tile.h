// The shape of a tile of decode: query rows of one token and kv head, and the keys that they meet together; and how
// rows of the cache are fetched ahead. Vectors here are as wide as a whole register tile, so that one operation of the
// source stands for several instructions, which also makes it quicker to optimise.
#pragma once

#include "common/key_range.h"
#include "cpu/attend/rows.h"

namespace kvjit {

/// Rows of a tile with 4 keys, as many as let its accumulators fit the registers.
inline constexpr int kQuadRows = kVectorBytes / 16;
constexpr int tiles_of(int rows) {
    return (kGroup + rows - 1) / rows;
}
constexpr int tile_rows() {
    int rows = 1;
    while (rows < kGroup && rows < kQuadRows) rows *= 2;
    return 2 * tiles_of(2 * kQuadRows) == tiles_of(kQuadRows) ? 2 * kQuadRows : rows;
}
/// Rows of a tile, query heads of one token and kv head. A key is loaded once for all of them: twice as many with half
/// as many keys, where that doesn't pad more.
inline constexpr int kRows = tile_rows();
inline constexpr int kTilesPerToken = tiles_of(kRows);
/// Keys scored together: a transposing sum turns 4 accumulators, a row's or two rows', into neighbouring scores.
inline constexpr int kKeys = kRows > kQuadRows ? 2 : 4;
/// Elements of a value row summed together: 4 registers, or 2, for each of kRows rows.
inline constexpr int kSpan = kVectorBytes * kKeys / 4;

inline constexpr int kChunkKeys = static_cast<int>(abi::kChunk);
/// Floats from one row's scores to the next row's. A power of two would crowd a few sets of the processor's cache.
inline constexpr int kScoreStride = kChunkKeys + 16;

inline constexpr int kRowBytes = static_cast<int>(bytes_of<T2>(kHeadDim));
inline constexpr int kRowLines = (kRowBytes + 63) / 64;  // of the processor's caches
/// Prefetch distances in rows. A row is fetched into the second-level cache kAhead rows early, enough to cover memory's
/// latency, and into the first kNear rows early: some processors have few lines under way to that from memory. Products
/// of bytes pass over more rows in that time.
inline constexpr bool kShortRows = kRowBytes <= 192, kFastRows = kHasVnni && kQuantised && kQuantGroup >= 32;
/// So do products of tiles.
#ifdef __AMX_BF16__
inline constexpr bool kFastTiles = kSame<T1, bf16_t> && kSame<T2, bf16_t> && kHeadDim % 32 == 0;
#else
inline constexpr bool kFastTiles = false;
#endif
inline constexpr int kAheadBytes = kFastTiles ? 24576 : 12288;
inline constexpr int kAhead = kHeadInner         ? 32
                              : kShortRows       ? (kFastRows || kFastTiles ? 192 : 64)
                              : kRowBytes < 1536 ? kAheadBytes / kRowBytes
                                                 : 8;
inline constexpr int kNear = kHeadInner ? 4 : 8;
/// A prefetch from a page of memory that was not used lately waits for the page's address to be looked up, and delays
/// those behind it. So a first one goes to each page early, kReach rows ahead. Where heads are neighbours a page has a
/// row or two, too few for that to pay, and over quantised rows arithmetic hides the wait. A page is taken to begin
/// at every kPageRows-th row of the list; where memory's begin elsewhere, a page's first prefetch comes less early.
inline constexpr bool kPagesAhead = !kHeadInner && !kQuantised;
inline constexpr int kMemoryPage = 4096, kPageRows = kMemoryPage / kRowBytes;
inline constexpr int kReach = kAhead + (kPagesAhead ? kPageRows : 0);
using ChunkRows = RowList<kChunkKeys + kReach>;

/// Keys whose values a tile sums before the next span of elements and the next tile: few, so that memory is read in
/// order, since those continue in neighbouring memory. More where several tiles of one head take turns over the same
/// values: each time they load and store their sums.
inline constexpr int kFewValues = 8, kValueBlock = 32;

/// Keys at..at+kKeys-1 of a kv head, and the panel's rows from the tile's first on. first_of_head: whether the tile is
/// the first of the panel that meets them. It prefetches later ones, and what it makes of these for the products is
/// there for the tiles after it.
struct ScoredKeys {
    i64 at, head, rows;
    bool first_of_head;
};

/// Keys begin..end-1 of the chunk and a kv head, whose values are summed, and the panel's rows from the tile's first
/// on. first: sums begin with them. of_head: those that the panel's tiles of this head see, if this tile is the first
/// of them; else none.
struct ValueRange {
    i64 begin, end, head, rows;
    bool first;
    KeyRange of_head;

    KVJIT_INLINE bool holds(i64 t) const { return begin <= t && t < end; }
};

/// What a row's sums of a chunk are of: probabilities, from the chunk's first key on, and values.
struct SummedRow {
    const float* probabilities;
    const ChunkRows& values;
    KeyRange keys;
    i64 head;
};

/// The values of an even key and of the next one.
struct ValuePair {
    RowAt even, odd;
};

/// Whether some row of the tile sees key t, as far as masks say.
KVJIT_INLINE bool seen_by_tile(const float* probabilities, i64 t) {
    if constexpr (kMaskRank == 0) return true;
    i32 seen = 0;
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) seen |= __builtin_bit_cast(i32, probabilities[r * kScoreStride + t]) ^ kHiddenBits;
    return seen != 0;
}

/// Value t, or zeros in place of one that must not be read.
KVJIT_INLINE RowAt value_row(const ChunkRows& rows, const ValueRange& range, i64 t, bool seen) {
    const bool readable = range.holds(t) && seen;
    return {readable ? rows.codes(t, range.head) : kZeroCodes, readable ? rows.scales(t, range.head) : kZeroScales};
}

// ---- Fetching ahead ------------------------------------------------------------------------------------------------

KVJIT_INLINE const char* row_bytes(const ChunkRows& rows, i64 at, i64 head) {
    return reinterpret_cast<const char*>(rows.codes(at, head));
}

/// Prefetches, while rows at..at+count-1 are read, a line of each page of memory that other prefetches reach next.
KVJIT_INLINE void prefetch_pages(const ChunkRows& rows, i64 at, i64 count, i64 head) {
    if constexpr (!kPagesAhead) return;
#pragma clang loop unroll(disable)
    for (i64 t = (at + kPageRows - 1) / kPageRows * kPageRows; t < at + count; t += kPageRows)
        prefetch_far(row_bytes(rows, t + kReach, head));
}

/// Prefetches, while row `at` is read, elements d..d+N-1 of rows that come later.
template <int N>
KVJIT_INLINE void prefetch_span(const ChunkRows& rows, i64 at, i64 head, int d) {
    const i64 first = bytes_of<T2>(d);
#pragma clang loop unroll(full)
    for (int byte = 0; byte < bytes_of<T2>(N); byte += 64) {
        prefetch_far(row_bytes(rows, at + kAhead, head) + first + byte);
        prefetch(row_bytes(rows, at + kNear, head) + first + byte);
    }
    if constexpr (kQuantised)
        if (d == 0) prefetch_far(rows.scales(at + kAhead, head));
}

/// Prefetches, while the kCount rows from `at` on are read, part `share` of kShares of those that come later.
template <int kShares, int kCount = kKeys>
KVJIT_INLINE void prefetch_share(const ChunkRows& rows, i64 at, i64 head, int share) {
    constexpr int kCacheLines = kCount * kRowLines;
    constexpr int kNext = kNear > kCount ? kNear : kCount;
    constexpr int kMost = (kCacheLines + kShares - 1) / kShares;
    const int begin = share * kCacheLines / kShares, end = (share + 1) * kCacheLines / kShares;
#pragma clang loop unroll(full)
    for (int i = 0; i < kMost; ++i) {
        const int line = begin + i;
        if (kCacheLines % kShares != 0 && line >= end) break;
        const i64 row = at + line / kRowLines, byte = line % kRowLines * 64;
        prefetch_far(row_bytes(rows, row + kAhead, head) + byte);
        prefetch(row_bytes(rows, row + kNext, head) + byte);
    }
}

}  // namespace kvjit
