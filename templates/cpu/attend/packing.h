// What the products of prefill multiply: rows of queries, keys and values, and probabilities, packed as factors.
#pragma once

#include "common/key_range.h"
#include "cpu/attend/prefill_rows.h"
#include "cpu/attend/rows.h"

namespace kvjit {

/// Keys that are packed together.
inline constexpr int kBlockKeys = kPadDim > 256 ? 32 : 64;

}  // namespace kvjit

#include "cpu/attend/listed_block.h"
#include "cpu/attend/split.h"
#include "cpu/machine/pairs.h"

namespace kvjit {

/// Whether the factors are bfloat16 pairs, of a bfloat16 cache or of dequantised numbers. A dequantised key is
/// the sum of two terms then (split.h); a dequantised value is rounded to one.
inline constexpr bool kPacksPairs = kFastBfloat16 && kSame<T1, bf16_t> && (kSame<T2, bf16_t> || kQuantised);
inline constexpr int kPowerDegree = power_degree(kPacksPairs);
using Packed = FactorOf<kPacksPairs>::Type;
inline constexpr int kPackedElements = kPacksPairs ? 2 : 1;
inline constexpr int kKeyTerms = kPacksPairs && kQuantised ? 2 : 1;

/// Keys or elements that are summed together for kTileRows rows, in enough accumulators to hide the latency of FMA.
inline constexpr int kTall = kVectorBytes == 64 ? 8 : 4;
static_assert(abi::kChunk % kBlockKeys == 0 && kBlockKeys % kLanes == 0 && kBlockKeys % kTall == 0);
static_assert(kHeadDim % kTall == 0);

/// Factors of a query or a key's term, and of the whole vectors that hold them.
inline constexpr int kPackedFactors = kHeadDim / kPackedElements;
inline constexpr int kPadFactors = (kPackedFactors + kLanes - 1) / kLanes * kLanes;
/// Factors from one packed row to the next. A power of two would crowd a few sets of the processor's cache.
inline constexpr int kKeyStride = kKeyTerms * kPadFactors + 16;
inline constexpr int kValueStride = kPadDim + 16;

/// A query row of kPadFactors factors.
KVJIT_INLINE void pack_query(Packed* to, const T1* from) {
    if constexpr (kPacksPairs) {
        char* row = reinterpret_cast<char*>(to);
        clear(to + kPadFactors - kLanes, kLanes);
        for_each_vector_rolled<kHeadDim>([&]<int N>(int d) { store_vector(row + 2 * d, load_raw<u16, N>(from + d)); });
    } else {
        widen_row(reinterpret_cast<float*>(to), from);
    }
}

/// Elements d..d+N-1 of a cache row, as elements of its factors.
template <int N>
KVJIT_INLINE auto factor_elements(const T2* codes, const T3* scales, int d) {
    if constexpr (!kPacksPairs)
        return load_cache<N>(codes, scales, d);
    else if constexpr (kQuantised)
        return round_to_bfloat16<N>(load_cache<N>(codes, scales, d));
    else
        return load_raw<u16, N>(codes + d);
}

/// Stores N elements of a key's row.
template <int N>
KVJIT_INLINE void pack_key(char* to, const T2* codes, const T3* scales, int d) {
    constexpr int kBytes = sizeof(Packed) / kPackedElements;
    if constexpr (kKeyTerms == 1) {
        store_vector(to + d * kBytes, factor_elements<N>(codes, scales, d));
    } else {
        const Halves<N> halves = split<N>(load_cache<N>(codes, scales, d));
        store_vector(to + d * kBytes, upper<N>(halves.first));
        store_vector(to + (kPadFactors * kPackedElements + d) * kBytes, upper<N>(halves.second));
    }
}

/// Listed rows of one kv head, keys or values, to be packed.
struct PackedRows {
    const RowList<kBlockKeys>& rows;
    i64 head;
    KeyRange keys;

    template <int N>
    KVJIT_INLINE auto elements(i64 k, int d) const {
        return factor_elements<N>(rows.codes(k, head), rows.scales(k, head), d);
    }
};

/// Packs rows by f.template operator()<N>(row, k, d), with zero rows on both sides up to multiples of kTall.
template <int kStride, class F>
KVJIT_INLINE void pack_rows(Packed* to, KeyRange keys, F&& f) {
    const auto [begin, end] = keys;
    if constexpr (kWindow) clear(to + begin / kTall * kTall * kStride, begin % kTall * kStride);
#pragma clang loop unroll(disable)
    for (i64 k = begin; k < end; ++k) {
        Packed* row = to + k * kStride;
#pragma clang loop unroll_count(2)
        for (int d = 0; d < kWholeDim; d += kLanes) f.template operator()<kLanes>(row, k, d);
        if constexpr (kWholeDim < kHeadDim) f.template operator()<8>(row, k, kWholeDim);
    }
    const i64 padded = (end + kTall - 1) / kTall * kTall;
    clear(to + end * kStride, (padded - end) * kStride);
}

KVJIT_INLINE void pack_keys(Packed* to, const PackedRows& from) {
    pack_rows<kKeyStride>(to, from.keys, [&]<int N>(Packed* row, i64 k, int d) {
        pack_key<N>(reinterpret_cast<char*>(row), from.rows.codes(k, from.head), from.rows.scales(k, from.head), d);
    });
}

/// Elements d..d+N-1 of the values of keys 2*pair and 2*pair+1; 0 for a key that is not listed.
template <int N>
KVJIT_INLINE void pack_value_pair(Packed* row, const PackedRows& from, i64 pair, int d) {
    const vec<u16, N> zeros(static_cast<u16>(0));
    const i64 even = 2 * pair, odd = even + 1;
    const vec<u16, N> first = even >= from.keys.begin ? from.elements<N>(even, d) : zeros;
    const vec<u16, N> second = odd < from.keys.end ? from.elements<N>(odd, d) : zeros;
    store_vector(row + d, pair_up<N>(first, second));
}

KVJIT_INLINE void pack_values(Packed* to, const PackedRows& from) {
    if constexpr (kPacksPairs) {
#pragma clang loop unroll(disable)
        for (i64 pair = from.keys.begin / 2; pair < (from.keys.end + 1) / 2; ++pair) {
            Packed* row = to + pair * kValueStride;
#pragma clang loop unroll(disable)
            for (int d = 0; d < kWholeDim; d += kLanes) pack_value_pair<kLanes>(row, from, pair, d);
            if constexpr (kWholeDim < kHeadDim) pack_value_pair<8>(row, from, pair, kWholeDim);
        }
    } else {
        pack_rows<kValueStride>(
            to, from.keys, [&]<int N>(Packed* row, i64 k, int d) { store_vector(row + d, from.elements<N>(k, d)); });
    }
}

/// Turns lines of probabilities into lines of pairs, in place; a key outside of `keys` has probability 0.
KVJIT_INLINE void pack_probabilities(float* lines, KeyRange keys) {
    if constexpr (!kPacksPairs) return;
#pragma clang loop unroll(disable)
    for (i64 pair = keys.begin / 2; pair < (keys.end + 1) / 2; ++pair) {
        const bool even = 2 * pair >= keys.begin, odd = 2 * pair + 1 < keys.end;
#pragma clang loop unroll(full)
        for (int r = 0; r < kTileRows; r += 16) {
            const float* from = lines + 2 * pair * kTileRows + r;
            const vf<16> first = even ? load<16>(from) : vf<16>(0.0f);
            const vf<16> second = odd ? load<16>(from + kTileRows) : vf<16>(0.0f);
            const vec<u32, 16> pairs = round_pairs<16>(first, second);
            store_vector(lines + pair * kTileRows + r, pairs);
        }
    }
}

}  // namespace kvjit
