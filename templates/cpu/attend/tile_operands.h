// Tiles of queries and keys, and the listed rows that they are packed from.
#pragma once

#include "common/key_range.h"
#include "cpu/attend/listed_block.h"
#include "cpu/attend/split.h"
#include "cpu/attend/tile_terms.h"
#include "cpu/machine/pairs.h"

namespace kvjit {

static_assert(abi::kChunk % kBlockKeys == 0 && kBlockKeys % kPartKeys == 0);

/// 16 rows of 64 bytes, `stride` bytes apart.
struct TileRowsAt {
    const char* first;
    i64 stride;
};
KVJIT_INLINE const char* bytes_at(const void* p) {
    return static_cast<const char*>(p);
}

/// The range, widened to whole steps.
KVJIT_INLINE KeyRange whole_steps(KeyRange keys) {
    return {keys.begin / kStepKeys * kStepKeys, (keys.end + kStepKeys - 1) / kStepKeys * kStepKeys};
}

/// Listed rows of one kv head, keys or values, to be packed. seen: for each key whether it counts; null: all do.
struct PackedRows {
    const RowList<kBlockKeys>& rows;
    i64 head;
    KeyRange keys;
    const bool* seen;

    bool has(i64 k) const { return k >= keys.begin && k < keys.end && (seen == nullptr || seen[k]); }
    /// Key k's row, or zeros in place of one that doesn't count.
    RowAt row(i64 k) const {
        return has(k) ? RowAt{rows.codes(k, head), rows.scales(k, head)} : RowAt{kZeroCodes, kZeroScales};
    }
};

/// Fetches the line-th cache line of the rows of a step.
KVJIT_INLINE void fetch_line(const RowsAhead& ahead, i64 step, i64 line) {
    if (64 * line >= bytes_of<T2>(kHeadDim)) return;
    const i64 end = smaller(step + kStepKeys, ahead.keys.end);
#pragma clang loop unroll(disable)
    for (i64 k = larger(step, ahead.keys.begin); k < end; ++k)
        prefetch_far(reinterpret_cast<const char*>(ahead.rows.codes(k, ahead.head)) + 64 * line);
}

/// Elements d..d+N-1 of a row: as bfloat16, where they are, and as floats.
template <int N>
KVJIT_INLINE vec<u16, N> row_bits(const RowAt& row, int d) {
    return load_raw<u16, N>(row.codes + d);
}
template <int N>
KVJIT_INLINE vf<N> row_numbers(const RowAt& row, int d) {
    return load_cache<N>(row.codes, row.scales, d);
}

// ---- Queries and keys ----------------------------------------------------------------------------------------------

/// Sets elements kHeadDim..kWideDim-1 of a row to 0.
KVJIT_INLINE void clear_padding(u32* row) {
#pragma clang loop unroll(disable)
    for (int d = kHeadDim; d < kWideDim; d += 8) store_vector(row + d / 2, vec<u32, 4>(0u));
}

/// A row of kRowPairs pairs, or two rows, of first and of second terms. bits, numbers: as of a row of the cache.
template <int kCount, class Bits, class Numbers>
KVJIT_INLINE void pack_row(u32* row, Bits&& bits, Numbers&& numbers) {
    for_each_vector_rolled<kHeadDim>([&]<int N>(int d) {
        if constexpr (kCount == 1) {
            store_vector(row + d / 2, bits.template operator()<N>(d));
        } else {
            const Halves<N> halves = split<N>(numbers.template operator()<N>(d));
            store_vector(row + d / 2, upper<N>(halves.first));
            store_vector(row + kRowPairs + d / 2, upper<N>(halves.second));
        }
    });
#pragma clang loop unroll(full)
    for (int term = 0; term < kCount; ++term) clear_padding(row + term * kRowPairs);
}

KVJIT_INLINE void pack_query(u32* row, const T1* from) {
    pack_row<kQueryTerms>(
        row, [&]<int N>(int d) { return load_raw<u16, N>(from + d); }, [&]<int N>(int d) { return load<N>(from + d); });
}

KVJIT_INLINE void pack_key(u32* to, const RowAt& row) {
    pack_row<kKeyTerms>(
        to, [&]<int N>(int d) { return row_bits<N>(row, d); }, [&]<int N>(int d) { return row_numbers<N>(row, d); });
}

/// Whether keys k..k+15 are listed and lie in the cache as a tile takes them.
KVJIT_INLINE bool lies_in_tiles(const PackedRows& from, i64 k) {
    if constexpr (kKeyTerms != 1 || kHeadDim != kWideDim) return false;
    if (k < from.keys.begin || k + 16 > from.keys.end) return false;
    return from.rows.is_even(k);
}

KVJIT_NOINLINE void pack_keys(u32* to, TileRowsAt* tiles, const PackedRows& from) {
    const auto [begin, end] = whole_steps(from.keys);
#pragma clang loop unroll(disable)
    for (i64 first = begin; first < end; first += 16) {
        if (lies_in_tiles(from, first)) {
            tiles[first / 16] = {bytes_at(from.rows.codes(first, from.head)),
                                 from.rows.row[first + 1] - from.rows.row[first]};
            continue;
        }
        tiles[first / 16] = {bytes_at(to + first * kKeyStride), 4 * kKeyStride};
#pragma clang loop unroll(disable)
        for (i64 k = first; k < first + 16; ++k) {
            u32* row = to + k * kKeyStride;
            if (from.has(k))
                pack_key(row, from.row(k));
            else
                clear(row, kKeyTerms * kRowPairs);
        }
    }
}

// ---- Values --------------------------------------------------------------------------------------------------------

/// Numbers of the pairs of one step: 16 rows of kWideDim for each term.
inline constexpr int kStepPairs = 16 * kWideDim;

/// Sets elements kHeadDim..kWideDim-1 of `rows` rows of pairs to 0.
KVJIT_INLINE void clear_pair_padding(u32* pairs, int rows) {
#pragma clang loop unroll(disable)
    for (int row = 0; row < rows; ++row) {
#pragma clang loop unroll(disable)
        for (int d = kHeadDim; d < kWideDim; d += 8) store_vector(pairs + row * kWideDim + d, vec<u32, 8>(0u));
    }
}

/// Whether a pair of the step has a bfloat16 that isn't finite: whose exponent is all ones.
KVJIT_NOINLINE bool has_nonfinite(const u32* pairs) {
    vec<u32, kLanes> carries(0u);
#pragma clang loop unroll_count(2)
    for (int at = 0; at < kStepPairs; at += kLanes)
        carries |= (load_raw<u32, kLanes>(pairs + at) & 0x7f807f80) + 0x00800080;
    return (__builtin_reduce_or(carries) & 0x80008000) != 0;
}

// ---- Probabilities -------------------------------------------------------------------------------------------------

inline constexpr int kPowerDegree = power_degree(kProbabilityTerms == 1);

/// Numbers of the probabilities of a pair of keys.
inline constexpr int kPairStride = kProbabilityTerms * kTileRows;

/// Writes the pairs of kLanes rows' probabilities of an even key and the next. Pairs have a line for each term.
KVJIT_INLINE void pack_probabilities(u32* to, vf<kLanes> even, vf<kLanes> odd) {
    if constexpr (kProbabilityTerms == 1) {
        store_vector(to, pair_upper<kLanes>(round_upper<kLanes>(even), round_upper<kLanes>(odd)));
    } else {
        const Halves<kLanes> a = split<kLanes>(even), b = split<kLanes>(odd);
        store_vector(to, pair_upper<kLanes>(a.first, b.first));
        store_vector(to + kTileRows, pair_upper<kLanes>(a.second, b.second));
    }
}

}  // namespace kvjit
