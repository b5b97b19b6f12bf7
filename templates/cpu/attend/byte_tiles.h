// Sums of products of bytes by AMX: a tile of digits, with a row for each digit of each query or of its weights, times
// a tile of codes, whose columns are keys, or elements of the values. A head's first tile packs the codes.
#pragma once

#include "cpu/attend/digit_rows.h"

#include "cpu/attend/decode_bytes.h"
#include "cpu/machine/tiles/contract.h"

namespace kvjit {

class TileSums {
public:
    // ---- Scores ----------------------------------------------------------------------------------------------------

    /// scores[r] += products of the keys' codes, for all rows. A step's codes are packed, multiplied and added amid the
    /// work on those around it: later keys come from memory meanwhile, and a tile that is loaded right after vectors
    /// stored it waits, as do vectors that are loaded right after a tile was stored.
    KVJIT_INLINE void add_scores(vf<16>* scores, const DigitTile& query, const ByteKeys& keys, const ChunkRows& rows,
                                 ScoredKeys scored) {
#pragma clang loop unroll(full)
        for (int row = 0; row < kRows; row += kRowsTogether) {
#pragma clang loop unroll(disable)
            for (int step = 0; step < kSteps + 2; ++step) {
                if (row == 0 && scored.first_of_head && step < kSteps) pack_step(keys, rows, scored, step);
                if (step > 0 && step <= kSteps) multiply_step(query, row, step - 1);
                if (step > 1) add_step(scores, query, keys, row, step - 2);
            }
        }
    }

    // ---- Sums of values --------------------------------------------------------------------------------------------

    KVJIT_INLINE void begin_values(const ChunkRows& rows, const ValueRange& range) { pack_values(rows, range); }
    KVJIT_INLINE void begin_rows(const WeightBlock& block, int row) { multiply_values(block, row); }

    KVJIT_INLINE const SpanSums& sum_span(SpanSums&, const WeightBlock&, const ChunkRows&, const ValueRange&, int,
                                          int d) {
        return span_sums_[d / kSpanElements];
    }

private:
    static constexpr int kSpans = kHeadDim / kSpanElements;
    /// Rows of a tile of codes: words of four elements, or four keys.
    static constexpr int kSegmentRows = kSegmentElements / 4, kTileKeys = 64, kValueRows = kTileKeys / 4;
    /// Registers: sums of both halves of a span, the first of them of segments, too; queries' digits, keys' codes;
    /// weights' digits, and the codes of a span's two halves.
    static constexpr int kSums = 0, kQuery = 2, kKey = 3, kWeights = 4, kValue = 5;
    static constexpr u8 kDigitRows = kRowsTogether * kDigits;
    static constexpr TileShapes kShapes = {
        .rows = {kDigitRows, kDigitRows, kDigitRows, kSegmentRows, kDigitRows, kValueRows, kValueRows, 0},
        .row_bytes = {64, 64, kSegmentElements, 64, kTileKeys, 64, 64, 0}};
    static_assert(kDigitRows <= 16 && kSegmentRows <= 16 && kSegmentElements <= 64);

    /// keys_[i]: word i of 16 keys, in the order of the queries' digits; those of a step.
    KVJIT_INLINE void pack_step(const ByteKeys& keys, const ChunkRows& rows, ScoredKeys scored, int step) {
        prefetch_share<kSteps, ByteKeys::kCount>(rows, scored.at, scored.head, step);
        vi<16> columns[kStepWords];
        load_8_columns(columns, keys.codes, step * 4 * kStepWords);
        i32(*to)[16] = keys_ + step * kStepWords * kByteCodes;
#pragma clang loop unroll(full)
        for (int i = 0; i < kStepWords; ++i, to += kByteCodes) {
            store_vector(to[0], signed_codes<false>(columns[i]));
            if constexpr (kByteCodes == 2) store_vector(to[1], signed_codes<true>(columns[i]));
        }
    }

    /// segment_sums_ = those of a step's segments, of the rows from `row` on.
    KVJIT_INLINE void multiply_step(const DigitTile& query, int row, int step) {
#pragma clang loop unroll(full)
        for (int segment = step * kStepSegments; segment < (step + 1) * kStepSegments; ++segment) {
            tiles_.zero<kSums>();
            tiles_.load<kQuery>(query.digits.words[row][0] + segment * kSegmentRows, kHeadDim);
            tiles_.load<kKey>(keys_[segment * kSegmentRows], 64);
            tiles_.multiply_signed_bytes<kSums, kQuery, kKey>();
            tiles_.store<kSums>(segment_sums_[segment], 64);
        }
    }

    /// scores[row + r] += segment_sums_ of a step.
    KVJIT_INLINE void add_step(vf<16>* scores, const DigitTile& query, const ByteKeys& keys, int row, int step) {
#pragma clang loop unroll(full)
        for (int segment = step * kStepSegments; segment < (step + 1) * kStepSegments; ++segment)
            add_segment(scores, segment_sums_[segment], query, keys, segment, row);
    }

    /// The codes of the four rows' bytes byte..byte+N-1.
    template <int N>
    KVJIT_INLINE void pack_bytes(const char* const (&rows)[4], int byte, i64 at) {
        vi<16> zipped[N / 16];
        zip_rows<N>(zipped, rows, byte);
#pragma clang loop unroll(full)
        for (int part = 0; part < N / 16; ++part) {
            const int column = (byte / 16 + part) * kByteCodes;
            store_vector(values_[column][at], signed_codes<false>(zipped[part]));
            if constexpr (kByteCodes == 2) store_vector(values_[column + 1][at], signed_codes<true>(zipped[part]));
        }
    }

    /// values_[column][k / 4]: the codes of four keys from k of the block on, for 16 elements of the values. What lies
    /// there of other keys has no weight.
    KVJIT_INLINE void pack_values(const ChunkRows& list, const ValueRange& range) {
        constexpr int kWholeBytes = kRowBytes / 64 * 64;
        const i64 begin = range.of_head.begin / kWeightKeys * kWeightKeys;
#pragma clang loop unroll(disable)
        for (i64 t = range.of_head.begin / 4 * 4; t < range.of_head.end; t += 4) {
            const char* rows[4];
#pragma clang loop unroll(full)
            for (int k = 0; k < 4; ++k) rows[k] = row_bytes(list, t + k, range.head);
            prefetch_share<1, 4>(list, t, range.head, 0);
#pragma clang loop unroll(disable)
            for (int byte = 0; byte < kWholeBytes; byte += 64) pack_bytes<64>(rows, byte, (t - begin) / 4);
            if constexpr (kWholeBytes < kRowBytes) pack_bytes<32>(rows, kWholeBytes, (t - begin) / 4);
        }
    }

    /// span_sums_ = those of the rows from `row` on.
    KVJIT_INLINE void multiply_values(const WeightBlock& block, int row) {
        const i64 first = block.first / kTileKeys * kTileKeys;
#pragma clang loop unroll(disable)
        for (int span = 0; span < kSpans; ++span) {
            const u8* weights = block.digits.rows[span * kSpanElements / kQuantGroup][row][0];
            tiles_.zero<kSums>();
            tiles_.zero<kSums + 1>();
#pragma clang loop unroll(disable)
            for (i64 k = first; k < block.end; k += kTileKeys) {
                tiles_.load<kWeights>(weights + k, kWeightKeys);
                tiles_.load<kValue>(values_[2 * span][k / 4], 64);
                tiles_.load<kValue + 1>(values_[2 * span + 1][k / 4], 64);
                tiles_.multiply_unsigned_bytes<kSums, kWeights, kValue>();
                tiles_.multiply_unsigned_bytes<kSums + 1, kWeights, kValue + 1>();
            }
            tiles_.store<kSums>(span_sums_[span][0], 64);
            tiles_.store<kSums + 1>(span_sums_[span][1], 64);
        }
    }

    TileRegisters tiles_{kShapes};
    alignas(64) i32 keys_[kHeadDim / 4][16];
    alignas(64) i32 values_[kHeadDim / 16][kWeightKeys / 4][16];
    SegmentSums segment_sums_[kSegments];
    SpanSums span_sums_[kSpans];
};

}  // namespace kvjit
