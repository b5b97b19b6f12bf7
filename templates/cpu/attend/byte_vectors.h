// Sums of products of bytes in lanes of vectors: a lane has a key, or an element of the values.
#pragma once

#include "cpu/attend/digit_words.h"

#include "cpu/attend/decode_bytes.h"

namespace kvjit {

struct VectorSums {
    // ---- Scores ----------------------------------------------------------------------------------------------------

    /// A step's columns are multiplied segment by segment, each as often as there are passes over rows.
    static constexpr int kStepWork = kStepWords * kRowPasses;

    /// sums += digits of the rows that are summed together times the codes of a column, plus 128: as unsigned bytes.
    template <bool kUpper>
    KVJIT_INLINE static void multiply_column(SegmentSums& sums, vi<16> column, const i32 (*digits)[4]) {
        const vi<16> codes = signed_codes<kUpper>(column) ^ static_cast<i32>(0x80808080);
#pragma clang loop unroll(full)
        for (int i = 0; i < kRowsTogether * kDigits; ++i) {
            vi<16>& sum = sums[i / kDigits][i % kDigits];
            sum = add_byte_products(sum, codes, vi<16>(digits[i / kDigits][i % kDigits]));
        }
    }

    /// Sums begin with what takes away the 128 that each code has too many.
    KVJIT_INLINE static void begin_segment(SegmentSums& sums, const DigitTile& query, int segment, int row) {
#pragma clang loop unroll(full)
        for (int r = 0; r < kRowsTogether; ++r) {
            const i32* begin = query.digits.begin[segment][row + r];
            sums[r][0] = vi<16>(begin[0]);
            sums[r][1] = vi<16>(begin[1]);
            sums[r][2] = vi<16>(0);
        }
    }

    /// The part begin..end-1 of a step's work: scores[r] += products of its columns. sums: of the segment that the part
    /// before left unfinished.
    KVJIT_INLINE static void score_columns(vf<16>* scores, SegmentSums& sums, const DigitTile& query,
                                           const ByteKeys& keys, const vi<16> (&columns)[kStepWords], int step,
                                           int begin, int end) {
#pragma clang loop unroll(full)
        for (int at = begin; at < end; ++at) {
            const int pass = at / kSegmentWords, word = at % kSegmentWords;
            const int row = pass % kRowPasses * kRowsTogether, segment = step * kStepSegments + pass / kRowPasses;
            const vi<16> column = columns[pass / kRowPasses * kSegmentWords + word];
            const QueryDigits::Word* digits = query.digits.words + (segment * kSegmentWords + word) * kByteCodes;
            if (word == 0) begin_segment(sums, query, segment, row);
            multiply_column<false>(sums, column, digits[0] + row);
            if constexpr (kByteCodes == 2) multiply_column<true>(sums, column, digits[1] + row);
            if (word == kSegmentWords - 1) add_segment(scores, sums, query, keys, segment, row);
        }
    }

    /// scores[r] += products of the keys' codes, for all rows.
    KVJIT_INLINE void add_scores(vf<16>* scores, const DigitTile& query, const ByteKeys& keys, const ChunkRows& rows,
                                 ScoredKeys scored) {
        vi<16> columns[kStepWords];
        // A processor looks only so far ahead. Loads of columns and products keep different units busy: the next
        // step's columns are loaded amid this one's products. Before the first step there is nothing to multiply.
#pragma clang loop unroll(disable)
        for (int step = -1; step < kSteps; ++step) {
            SegmentSums sums;
            if (step >= 0) {
                if (scored.first_of_head) prefetch_share<kSteps, ByteKeys::kCount>(rows, scored.at, scored.head, step);
                score_columns(scores, sums, query, keys, columns, step, 0, kStepWork / 2);
            }
            vi<16> next[kStepWords];
            load_8_columns(next, keys.codes, (step + 1) % kSteps * 4 * kStepWords);
            if (step >= 0) score_columns(scores, sums, query, keys, columns, step, kStepWork / 2, kStepWork);
#pragma clang loop unroll(full)
            for (int i = 0; i < kStepWords; ++i) columns[i] = next[i];
        }
    }

    // ---- Sums of values --------------------------------------------------------------------------------------------

    /// Before the sums of a block, and before those of the rows from `row` on.
    KVJIT_INLINE void begin_values(const ChunkRows&, const ValueRange&) {}
    KVJIT_INLINE void begin_rows(const WeightBlock&, int) {}

    /// Weights times the codes of the block's elements d..d+31, for the rows from `row` on. sums: a place for them.
    KVJIT_INLINE const SpanSums& sum_span(SpanSums& sums, const WeightBlock& block, const ChunkRows& rows,
                                          const ValueRange& range, int row, int d) {
#pragma clang loop unroll(full)
        for (int i = 0; i < 2 * kRowsTogether * kDigits; ++i) sums[i % 2][i / 2 / kDigits][i / 2 % kDigits] = vi<16>(0);
        const i64 first = block.first / 4 * 4, end = block.end;
#pragma clang loop unroll(disable)
        for (i64 k = first; k < end; k += 4) {
            vi<16> codes[2];
            load_codes_of_4(codes, rows, block.begin + k, range.head, d);
            if (row == 0)
                prefetch_share<kHeadDim / kSpanElements, 4>(rows, block.begin + k, range.head, d / kSpanElements);
#pragma clang loop unroll(full)
            for (int i = 0; i < 2 * kRowsTogether * kDigits; ++i) {
                const int half = i % 2, r = i / 2 / kDigits, digit = i / 2 % kDigits;
                const i32 weight = block.digits.words[k / 16][d / kQuantGroup][row + r][k / 4 % 4][digit];
                sums[half][r][digit] = add_byte_products(sums[half][r][digit], vi<16>(weight), codes[half]);
            }
        }
        return sums;
    }
};

}  // namespace kvjit
