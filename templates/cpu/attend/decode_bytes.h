// Products of decode over a quantised cache as sums of integers: codes are bytes, and so are the digits of queries
// (decode_digits.h) and of weights, which are probabilities times values' scales (decode_weights.h). Sums of integers
// are exact, and become floats for each segment of a query and each block of keys. Numbers that have no digits, such as
// NaN, are left to floats, row by row.
#pragma once

#include "cpu/attend/decode_digits.h"
#include "cpu/attend/decode_weights.h"

namespace kvjit {

static_assert(kQuantised && kHeadDim % kStepElements == 0 && kQuantGroup % 32 == 0);
static_assert(kSegmentElements * kSegments == kHeadDim && kAhead >= 16);
static_assert(kLanes == 16 || !kHasVnni);  // softmax writes the probabilities of 16 keys together

struct ByteProducts {
    using Query = DigitTile;
    using Scratch = WeightBlock;
    static constexpr int kKeys = 16;
    static constexpr int kKeysTogether = kWeightKeys, kValueBlock = kWeightKeys;
    /// Rows whose sums fit the registers.
    static constexpr int kRowsTogether = kRows < 4 ? kRows : 4;

    KVJIT_INLINE static void load_query(Query& tile, i64 r, const T1* from) { load_digits(tile, r, from); }

    // ---- Scores ----------------------------------------------------------------------------------------------------

    struct KeyTile {
        const char* codes[kKeys];
        alignas(64) float scales[kScalesPerRow][kKeys];
    };

    /// Digits' sums over a segment, for the rows that are multiplied together.
    using SegmentSums = vi<16>[kRowsTogether][kDigits];

    /// The signed codes of each byte times kCodeFactor: the lower codes of bytes that have two (kUpper false), or those
    /// in the upper bits.
    template <bool kUpper>
    KVJIT_INLINE static vi<16> signed_codes(vi<16> bytes) {
        if constexpr (kByteCodes == 1)
            return bytes;
        else
            return (kUpper ? bytes : bytes << 4) & static_cast<i32>(0xf0f0f0f0);
    }

    /// sums += digits of the rows from `row` on times the codes of a column, plus 128: as unsigned bytes.
    template <bool kUpper>
    KVJIT_INLINE static void multiply_column(SegmentSums& sums, vi<16> column, const i32 (*digits)[4]) {
        const vi<16> codes = signed_codes<kUpper>(column) ^ static_cast<i32>(0x80808080);
#pragma clang loop unroll(full)
        for (int i = 0; i < kRowsTogether * kDigits; ++i) {
            vi<16>& sum = sums[i / kDigits][i % kDigits];
            sum = add_byte_products(sum, codes, vi<16>(digits[i / kDigits][i % kDigits]));
        }
    }

    /// A sum of products from those of the digits: units[0] * lowest + units[1] * (256 * upper + middle).
    KVJIT_INLINE static vf<16> sum_of_digits(vi<16> lowest, vi<16> others, const float (&units)[2]) {
        return fma<16>(__builtin_convertvector(lowest, vf<16>), vf<16>(units[0]),
                       __builtin_convertvector(others, vf<16>) * units[1]);
    }

    /// scores[r] += sums of a segment, times the scales of 16 keys, for the rows from `row` on.
    KVJIT_INLINE static void add_segment(vf<16>* scores, const SegmentSums& sums, const Query& query, int segment,
                                         int row, vf<16> scale) {
#pragma clang loop unroll(full)
        for (int r = 0; r < kRowsTogether; ++r) {
            const vf<16> sum = sum_of_digits(sums[r][0], (sums[r][2] << 8) + sums[r][1], query.unit[segment][row + r]);
            scores[row + r] = fma<16>(sum, scale, scores[row + r]);
        }
    }

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

    static constexpr int kRowPasses = kRows / kRowsTogether;
    /// A step's columns are multiplied segment by segment, each as often as there are passes over rows.
    static constexpr int kStepWork = kStepWords * kRowPasses;

    /// The part begin..end-1 of a step's work: scores[r] += products of its columns. sums: of the segment that the part
    /// before left unfinished.
    KVJIT_INLINE static void score_columns(vf<16>* scores, SegmentSums& sums, const Query& query, const KeyTile& keys,
                                           const vi<16> (&columns)[kStepWords], int step, int begin, int end) {
#pragma clang loop unroll(full)
        for (int at = begin; at < end; ++at) {
            const int pass = at / kSegmentWords, word = at % kSegmentWords;
            const int row = pass % kRowPasses * kRowsTogether, segment = step * kStepSegments + pass / kRowPasses;
            const vi<16> column = columns[pass / kRowPasses * kSegmentWords + word];
            const DigitTile::Word* digits = query.digits + (segment * kSegmentWords + word) * kByteCodes;
            if (word == 0) begin_segment(sums, query, segment, row);
            multiply_column<false>(sums, column, digits[0] + row);
            if constexpr (kByteCodes == 2) multiply_column<true>(sums, column, digits[1] + row);
            if (word < kSegmentWords - 1) continue;
            add_segment(scores, sums, query, segment, row,
                        load<16>(keys.scales[segment * kSegmentElements / kQuantGroup]));
        }
    }

    /// Sums begin with what takes away the 128 that each code has too many.
    KVJIT_INLINE static void begin_segment(SegmentSums& sums, const Query& query, int segment, int row) {
#pragma clang loop unroll(full)
        for (int r = 0; r < kRowsTogether; ++r) {
            const i32* begin = query.begin[segment][row + r];
            sums[r][0] = vi<16>(begin[0]);
            sums[r][1] = vi<16>(begin[1]);
            sums[r][2] = vi<16>(0);
        }
    }

    /// scores[r] += products of the keys' columns, for all rows.
    KVJIT_INLINE static void score_steps(vf<16>* scores, const Query& query, const KeyTile& keys, const ChunkRows& rows,
                                         ScoredKeys scored) {
        vi<16> columns[kStepWords];
        // A processor looks only so far ahead. Loads of columns and products keep different units busy: the next
        // step's columns are loaded amid this one's products. Before the first step there is nothing to multiply.
#pragma clang loop unroll(disable)
        for (int step = -1; step < kSteps; ++step) {
            SegmentSums sums;
            if (step >= 0) {
                if (scored.prefetch) prefetch_share<kSteps, kKeys>(rows, scored.at, scored.head, step);
                score_columns(scores, sums, query, keys, columns, step, 0, kStepWork / 2);
            }
            vi<16> next[kStepWords];
            load_8_columns(next, keys.codes, (step + 1) % kSteps * 4 * kStepWords);
            if (step >= 0) score_columns(scores, sums, query, keys, columns, step, kStepWork / 2, kStepWork);
#pragma clang loop unroll(full)
            for (int i = 0; i < kStepWords; ++i) columns[i] = next[i];
        }
    }

    KVJIT_INLINE static void score_keys(float* scores, const Query& query, const ChunkRows& rows, ScoredKeys scored) {
        KeyTile keys;
        vf<16> sums[kRows];
        load_scales(keys.scales, rows, scored.at, scored.head);
#pragma clang loop unroll(full)
        for (int k = 0; k < kKeys; ++k) keys.codes[k] = row_bytes(rows, scored.at + k, scored.head);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) sums[r] = vf<16>(0.0f);
        score_steps(sums, query, keys, rows, scored);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) store<16>(scores + r * kScoreStride, sums[r]);
#pragma clang loop unroll(disable)
        for (int r = 0; r < kRows; ++r)
            if (query.floats[r]) score_by_floats(scores + r * kScoreStride, query.floats[r], rows, scored);
    }

    // ---- Sums of values --------------------------------------------------------------------------------------------

    KVJIT_INLINE static void store_probabilities(float* scores, i64 t, vf<kLanes> probabilities) {
        store<kLanes>(scores + t, probabilities);
    }

    /// The codes of values t..t+3, elements d..d+31: in lane i of codes[0] and [1] elements i and 16+i, or where bytes
    /// have two codes 2i and 2i+1.
    KVJIT_INLINE static void load_codes_of_4(vi<16> (&codes)[2], const ChunkRows& rows, i64 t, i64 head, int d) {
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

    using SpanSums = vi<16>[2][kRowsTogether][kDigits];

    /// sums += weights times the codes of the block's elements d..d+31, for the rows from `row` on.
    KVJIT_INLINE static void multiply_span(SpanSums& sums, const WeightBlock& block, const ChunkRows& rows,
                                           const ValueRange& range, int row, int d) {
        const i64 first = block.first / 4 * 4, end = block.end;
#pragma clang loop unroll(disable)
        for (i64 k = first; k < end; k += 4) {
            vi<16> codes[2];
            load_codes_of_4(codes, rows, block.begin + k, range.head, d);
            if (row == 0) prefetch_share<kHeadDim / 32, 4>(rows, block.begin + k, range.head, d / 32);
#pragma clang loop unroll(full)
            for (int i = 0; i < 2 * kRowsTogether * kDigits; ++i) {
                const int half = i % 2, r = i / 2 / kDigits, digit = i / 2 % kDigits;
                const i32 weight = block.digits[k / 16][d / kQuantGroup][row + r][k / 4 % 4][digit];
                sums[half][r][digit] = add_byte_products(sums[half][r][digit], vi<16>(weight), codes[half]);
            }
        }
    }

    KVJIT_INLINE static void add_span(float* sums, const WeightBlock& block, const ChunkRows& rows,
                                      const ValueRange& range, int row, int d) {
        SpanSums added;
#pragma clang loop unroll(full)
        for (int i = 0; i < 2 * kRowsTogether * kDigits; ++i)
            added[i % 2][i / 2 / kDigits][i / 2 % kDigits] = vi<16>(0);
        multiply_span(added, block, rows, range, row, d);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRowsTogether; ++r) {
            float* to = sums + (row + r) * kPadDim + d;
            vf<16> part[2];
#pragma clang loop unroll(full)
            for (int half = 0; half < 2; ++half) {
                const vi<16>* digits = added[half][r];
                part[half] =
                    sum_of_digits(digits[0], (digits[2] << 8) + digits[1], block.unit[d / kQuantGroup][row + r]);
            }
            vf<32> both = join<float, 16>(part[0], part[1]);
            if constexpr (kByteCodes == 2) both = interleave<float, 16>(part[0], part[1]);
            store<32>(to, range.first ? both : load<32>(to) + both);
        }
    }

    KVJIT_INLINE static void add_values(float* sums, const float* probabilities, const ChunkRows& rows,
                                        ValueRange range, WeightBlock& block) {
        weigh_block(block, probabilities, rows, range);
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += 32) {
#pragma clang loop unroll(full)
            for (int row = 0; row < kRows; row += kRowsTogether) add_span(sums, block, rows, range, row, d);
        }
#pragma clang loop unroll(disable)
        for (int r = 0; r < kRows; ++r)
            if (block.floats[r]) add_by_floats(sums + r * kPadDim, probabilities, r, rows, range);
    }

    KVJIT_INLINE static void order_row(float*) {}
};

}  // namespace kvjit
