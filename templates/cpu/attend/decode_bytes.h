// Products of decode over a quantised cache as sums of integers: codes are bytes, and so are the digits of queries
// (decode_digits.h) and of weights, which are probabilities times values' scales (decode_weights.h). Sums of integers
// are exact, and become floats for each segment of a query and each block of keys, so that all ways to sum give the
// same bits. Numbers that have no digits, such as NaN, are left to floats, row by row.
#pragma once

#include "cpu/attend/decode_digits.h"
#include "cpu/attend/decode_weights.h"

namespace kvjit {

/// Keys that are scored together.
struct ByteKeys {
    static constexpr int kCount = 16;

    const char* codes[kCount];
    alignas(64) float scales[kScalesPerRow][kCount];

    KVJIT_INLINE void load(const ChunkRows& rows, ScoredKeys scored) {
        load_scales(scales, rows, scored.at, scored.head);
#pragma clang loop unroll(full)
        for (int k = 0; k < kCount; ++k) codes[k] = row_bytes(rows, scored.at + k, scored.head);
    }
};

/// Sums of digits times codes, for the rows that are summed together: of 16 keys over a segment, and of the weighted
/// values of a block, for a span of elements.
using SegmentSums = vi<16>[kRowsTogether][kDigits];
using SpanSums = vi<16>[2][kRowsTogether][kDigits];

/// The signed codes of each byte times kCodeFactor: the lower codes of bytes that have two (kUpper false), or those in
/// the upper bits.
template <bool kUpper>
KVJIT_INLINE vi<16> signed_codes(vi<16> bytes) {
    if constexpr (kByteCodes == 1)
        return bytes;
    else
        return (kUpper ? bytes : bytes << 4) & static_cast<i32>(0xf0f0f0f0);
}

/// The codes of values t..t+3, elements d..d+31: in lane i of codes[0] and [1] elements i and 16+i, or where bytes have
/// two codes 2i and 2i+1.
KVJIT_INLINE void load_codes_of_4(vi<16> (&codes)[2], const ChunkRows& rows, i64 t, i64 head, int d) {
    const char* row[4];
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; ++k) row[k] = reinterpret_cast<const char*>(advance(rows.codes(t + k, head), d));
    if constexpr (kByteCodes == 1) {
        zip_32_bytes(codes, row);
    } else {
        const vi<16> bytes = zip_16_bytes(row);
        codes[0] = signed_codes<false>(bytes);
        codes[1] = signed_codes<true>(bytes);
    }
}

/// A sum of products from those of the digits: units[0] * lowest + units[1] * (256 * upper + middle).
KVJIT_INLINE vf<16> sum_of_digits(const vi<16> (&sums)[kDigits], const float (&units)[2]) {
    const vi<16> others = (sums[2] << 8) + sums[1];
    return fma<16>(__builtin_convertvector(sums[0], vf<16>), vf<16>(units[0]),
                   __builtin_convertvector(others, vf<16>) * units[1]);
}

/// scores[row + r] += the sums of a segment, times the scales of 16 keys.
KVJIT_INLINE void add_segment(vf<16>* scores, const SegmentSums& sums, const DigitTile& query, const ByteKeys& keys,
                              int segment, int row) {
    const vf<16> scale = load<16>(keys.scales[segment * kSegmentElements / kQuantGroup]);
#pragma clang loop unroll(full)
    for (int r = 0; r < kRowsTogether; ++r)
        scores[row + r] = fma<16>(sum_of_digits(sums[r], query.unit[segment][row + r]), scale, scores[row + r]);
}

/// Sums makes the sums of integers: byte_vectors.h shows what it has.
template <class Sums>
struct ByteProducts {
    using Query = DigitTile;
    struct Scratch {
        Sums sums;
        ByteKeys keys;
        WeightBlock weights;
    };
    static constexpr int kKeys = ByteKeys::kCount;
    static constexpr int kScoredRows = kRows, kSummedRows = kRows;
    static constexpr int kKeysTogether = kWeightKeys, kValueBlock = kWeightKeys;
    /// Weights are made of the probabilities of 16 keys, whatever the registers.
    static constexpr int kSoftmaxLanes = 16;
    static constexpr int kPowerDegree = power_degree(false);

    KVJIT_INLINE static void load_query(Query& tile, i64 r, const T1* from) { load_digits(tile, r, from); }

    // ---- Scores ----------------------------------------------------------------------------------------------------

    /// scores[k] = query · key k, for the tile's keys, by floats.
    KVJIT_INLINE static void score_by_floats(float* scores, const T1* query, const ChunkRows& rows, ScoredKeys scored) {
#pragma clang loop unroll(disable)
        for (i64 k = scored.at; k < scored.at + kKeys; ++k) {
            vf<16> sum(0.0f);
#pragma clang loop unroll(disable)
            for (int d = 0; d < kHeadDim; d += 16)
                sum = fma<16>(load<16>(query + d),
                              load_cache<16>(rows.codes(k, scored.head), rows.scales(k, scored.head), d), sum);
            scores[k - scored.at] = sum_of<16>(sum);
        }
    }

    KVJIT_INLINE static void score_keys(float* scores, const Query& query, const ChunkRows& rows, ScoredKeys scored,
                                        Scratch& scratch) {
        vf<16> sums[kRows];
        if (scored.first_of_head) scratch.keys.load(rows, scored);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) sums[r] = vf<16>(0.0f);
        scratch.sums.add_scores(sums, query, scratch.keys, rows, scored);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) store<16>(scores + r * kScoreStride, sums[r]);
#pragma clang loop unroll(disable)
        for (int r = 0; r < kRows; ++r)
            if (query.floats[r]) score_by_floats(scores + r * kScoreStride, query.floats[r], rows, scored);
    }

    // ---- Sums of values --------------------------------------------------------------------------------------------

    KVJIT_INLINE static void store_probabilities(float* scores, i64 t, vf<16> probabilities) {
        store<16>(scores + t, probabilities);
    }

    /// sums[row + r] += the sums of a span of elements, from d on.
    KVJIT_INLINE static void add_span(float* sums, const SpanSums& added, const WeightBlock& block, bool first, int row,
                                      int d) {
#pragma clang loop unroll(full)
        for (int r = 0; r < kRowsTogether; ++r) {
            float* to = sums + (row + r) * kPadDim + d;
            const float(&units)[2] = block.unit[d / kQuantGroup][row + r];
            const vf<16> low = sum_of_digits(added[0][r], units), high = sum_of_digits(added[1][r], units);
            const vf<32> both = kByteCodes == 2 ? interleave<float, 16>(low, high) : join<float, 16>(low, high);
            store<32>(to, first ? both : load<32>(to) + both);
        }
    }

    KVJIT_INLINE static void add_values(float* sums, const float* probabilities, const ChunkRows& rows,
                                        ValueRange range, Scratch& scratch) {
        WeightBlock& block = scratch.weights;
        weigh_block(block, probabilities, rows, range);
        scratch.sums.begin_values(rows, range);
#pragma clang loop unroll(full)
        for (int row = 0; row < kRows; row += kRowsTogether) {
            scratch.sums.begin_rows(block, row);
#pragma clang loop unroll(disable)
            for (int d = 0; d < kHeadDim; d += kSpanElements) {
                SpanSums place;
                const SpanSums& added = scratch.sums.sum_span(place, block, rows, range, row, d);
                add_span(sums, added, block, range.first, row, d);
            }
        }
#pragma clang loop unroll(disable)
        for (int r = 0; r < kRows; ++r)
            if (block.floats[r]) add_by_floats(sums + r * kPadDim, probabilities, r, rows, range);
    }

    KVJIT_INLINE static void finish_sums(float*, const SummedRow&) {}
};

}  // namespace kvjit
