// What AMX multiplies in prefill: queries, keys, probabilities and values as tiles of bfloat16 pairs. A number that is
// no bfloat16 is given by two (split.h). Queries and keys have pairs of neighbouring elements, probabilities and values
// those of an even key and the next.
#pragma once

#include "common/key_range.h"
#include "cpu/attend/panel.h"
#include "cpu/attend/split.h"
#include "cpu/machine/pairs.h"

namespace kvjit {

/// Terms of bfloat16 that a number is given by. Where T1 is bfloat16, probabilities and values are rounded to it.
template <class T>
inline constexpr int kTerms = kSame<T, bf16_t> ? 1 : 2;
inline constexpr int kQueryTerms = kTerms<T1>, kKeyTerms = kTerms<T2>;
inline constexpr int kProbabilityTerms = kTerms<T1>, kValueTerms = kQueryTerms == 1 ? 1 : kTerms<T2>;

/// Elements of a row, padded with zeros to whole tiles, and pairs of them.
inline constexpr int kWideDim = (kHeadDim + 31) / 32 * 32;
inline constexpr int kRowPairs = kWideDim / 2;
/// Pairs from one packed key to the next. A power of two would crowd a few sets of the processor's cache.
inline constexpr int kKeyStride = kKeyTerms * kRowPairs + 16;
/// Keys that one product of tiles sums over. Blocks are widened to multiples of them.
inline constexpr int kStepKeys = 32;
/// Keys of a part of a block: so few that their scores stay in the first-level cache until they are probabilities.
inline constexpr int kPartKeys = 2 * kStepKeys;

/// As many keys as leave room in the second-level cache for the rows of a panel.
constexpr int block_keys() {
    constexpr int kMost = 192 * 1024;
    constexpr int kBytesPerKey = 4 * kKeyStride + 2 * kWideDim * kValueTerms + 2 * kTileRows * kProbabilityTerms;
    int keys = 256;
    while (keys > kPartKeys && keys * kBytesPerKey > kMost) keys /= 2;
    return keys;
}
inline constexpr int kBlockKeys = block_keys();
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
    template <int N>
    KVJIT_INLINE vec<u16, N> bits(i64 k, int d) const {
        return load_raw<u16, N>(rows.codes(k, head) + d);
    }
    template <int N>
    KVJIT_INLINE vf<N> numbers(i64 k, int d) const {
        return load_cache<N>(rows.codes(k, head), rows.scales(k, head), d);
    }
};

// ---- Queries and keys ----------------------------------------------------------------------------------------------

/// Sets elements kHeadDim..kWideDim-1 of a row to 0.
KVJIT_INLINE void clear_padding(u32* row) {
#pragma clang loop unroll(disable)
    for (int d = kHeadDim; d < kWideDim; d += 8) store_vector(row + d / 2, vec<u32, 4>(0u));
}

/// A row of kRowPairs pairs, or two rows, of first and of second terms. bits, numbers: as PackedRows has them.
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

KVJIT_INLINE void pack_key(u32* row, const PackedRows& from, i64 k) {
    pack_row<kKeyTerms>(
        row, [&]<int N>(int d) { return from.bits<N>(k, d); }, [&]<int N>(int d) { return from.numbers<N>(k, d); });
}

/// Whether keys k..k+15 are listed and lie in the cache as a tile takes them.
KVJIT_INLINE bool lies_in_tiles(const PackedRows& from, i64 k) {
    if constexpr (kKeyTerms != 1 || kHeadDim != kWideDim) return false;
    if (k < from.keys.begin || k + 16 > from.keys.end) return false;
    const char* const* row = from.rows.row + k;
    bool even = true;
#pragma clang loop unroll(full)
    for (int i = 2; i < 16; ++i) even &= row[i] - row[i - 1] == row[1] - row[0];
    return even;
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
                pack_key(row, from, k);
            else
                clear(row, kKeyTerms * kRowPairs);
        }
    }
}

// ---- Values --------------------------------------------------------------------------------------------------------

/// Pairs of elements d..d+N-1 of the values of two keys, at to + d, the second terms kTermStride further on. A key that
/// doesn't count has zeros.
template <int N, int kTermStride>
KVJIT_INLINE void pack_value_pair(u32* to, const PackedRows& from, i64 even, int d) {
    const bool has_even = from.has(even), has_odd = from.has(even + 1);
    if constexpr (kKeyTerms == 1) {
        const vec<u16, N> none(static_cast<u16>(0));
        const vec<u16, N> first = has_even ? from.bits<N>(even, d) : none;
        const vec<u16, N> second = has_odd ? from.bits<N>(even + 1, d) : none;
        store_vector(to + d, pair_up<N>(first, second));
    } else {
        const vf<N> first = has_even ? from.numbers<N>(even, d) : vf<N>(0.0f);
        const vf<N> second = has_odd ? from.numbers<N>(even + 1, d) : vf<N>(0.0f);
        if constexpr (kValueTerms == 1) {
            store_vector(to + d, pair_up<N>(round_to_bfloat16<N>(first), round_to_bfloat16<N>(second)));
        } else {
            const Halves<N> a = split<N>(first), b = split<N>(second);
            store_vector(to + d, pair_upper<N>(a.first, b.first));
            store_vector(to + kTermStride + d, pair_upper<N>(a.second, b.second));
        }
    }
}

/// The tile of elements 16*column.. of 32 values from key 32*step on: a row for each element, with 16 pairs.
KVJIT_INLINE u32* value_tile(u32* values, i64 column, i64 step, int term) {
    return values + ((column * (kBlockKeys / kStepKeys) + step) * kValueTerms + term) * 256;
}

/// Scratch for the pairs of one step: 16 rows for each term.
inline constexpr int kStepPairs = 16 * kWideDim;

/// Writes the tiles of one term of a step.
KVJIT_NOINLINE void transpose_values(u32* values, i64 step, int term, const u32* pairs) {
#pragma clang loop unroll(disable)
    for (int column = 0; column < kWideDim / 16; ++column) {
        float* tile = reinterpret_cast<float*>(value_tile(values, column, step, term));
        const float* from = reinterpret_cast<const float*>(pairs + 16 * column);
#pragma clang loop unroll(disable)
        for (int d = 0; d < 16; d += kLanes) {
#pragma clang loop unroll(disable)
            for (int pair = 0; pair < 16; pair += kLanes)
                transpose_square(tile + d * 16 + pair, 16, from + pair * kWideDim + d, kWideDim);
        }
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

/// Packs values into tiles. pairs: kValueTerms * kStepPairs of scratch. Returns whether one isn't finite.
KVJIT_NOINLINE bool pack_values(u32* values, u32* pairs, const PackedRows& from) {
    const auto [begin, end] = whole_steps(from.keys);
    bool nonfinite = false;
#pragma clang loop unroll(disable)
    for (int row = 0; row < kValueTerms * 16; ++row) {
#pragma clang loop unroll(disable)
        for (int d = kHeadDim; d < kWideDim; d += 8) store_vector(pairs + row * kWideDim + d, vec<u32, 8>(0u));
    }
#pragma clang loop unroll(disable)
    for (i64 first = begin; first < end; first += kStepKeys) {
#pragma clang loop unroll(disable)
        for (i64 pair = 0; pair < 16; ++pair) {
            for_each_vector_rolled<kHeadDim>([&]<int N>(int d) {
                pack_value_pair<N, kStepPairs>(pairs + pair * kWideDim, from, first + 2 * pair, d);
            });
        }
        nonfinite |= has_nonfinite(pairs);
#pragma clang loop unroll(disable)
        for (int term = 0; term < kValueTerms; ++term)
            transpose_values(values, first / kStepKeys, term, pairs + term * kStepPairs);
    }
    return nonfinite;
}

// ---- Probabilities -------------------------------------------------------------------------------------------------

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
