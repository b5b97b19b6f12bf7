// Decode's two products over a stage of keys. Scores have packed rows for rows and keys for columns; sums of values
// have elements for rows and packed rows for columns: then a lane's probabilities are in the registers in which the
// second product takes them, and tiles of 8 packed rows are multiplied as they are, not as half of 16.
//
// A product may sum over elements in any order that both operands share: a lane loads 8 neighbouring elements of a key
// and uses them as columns 2t, 2t + 1, 2t + 8, 2t + 9 of two steps.
#pragma once

#include "cuda/attend/mma/accumulator.h"
#include "cuda/attend/mma/decode_codes.h"
#include "cuda/attend/mma/decode_ring.h"
#include "cuda/attend/mma/operands.h"
#include "cuda/attend/mma/softmax.h"
#include "cuda/attend/work.h"
#include "cuda/shape.h"

namespace kvjit {

inline constexpr int kKeyParts = mma_key_elements(kFormat) / 32;         // of 32 elements: two steps of a product
inline constexpr int kValueMatrices = mma_value_elements(kFormat) / 16;  // of 16 elements
inline constexpr int kRowTiles = mma_decode_rows(kFormat, kGroup) / 8;   // of 8 packed rows
inline constexpr bool kQueryShared = mma_shares_query(kFormat);
inline constexpr int kKeyTiles = kTileKeys / 8;             // of 8 keys: a product's columns
inline constexpr int kKeySteps = kTileKeys / kProductKeys;  // of 16 keys: a product's depth

using Scores = Fragment<kKeyTiles>;

/// What the values of a stage are multiplied by.
struct Weights {
    u32 probabilities[kKeySteps][4];  // packed in pairs of keys
    u32 seen[kKeyTiles];              // with masks: seen_pair of the lane's keys
    TileScales scales;                // if kScalesApart
    float rescale[kRowTiles];         // what sums of former values are to be multiplied by
};

// ---- Queries -------------------------------------------------------------------------------------------------------

/// The queries as left operands: of all steps, or for long rows of the current part's two.
struct QueryOperands {
    u32 step[kQueryShared ? 2 : 2 * kKeyParts][4];
};

/// The lane's rows of queries; null where there is none.
struct QueryRows {
    const T1* row[2];
    u32 sign;
};
KVJIT_INLINE QueryRows query_rows(const AttendWork& work) {
    QueryRows rows;
    rows.sign = query_sign(work);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const i64 row = work.row_begin + lane_row() + 8 * h;
        rows.row[h] = row < work.row_end ? query_row(work, row) : nullptr;
    }
    return rows;
}

/// Loads the left operands of the two steps over elements 32*part..32*part+31; zeros for rows that don't exist. If the
/// block has 8 rows, the other 8 aren't left out: the compiler would move zeros that it knows before each product.
KVJIT_INLINE void load_query_part(u32 (&first)[4], u32 (&second)[4], const QueryRows& rows, int part) {
    const i32 element = 32 * part + kFragment * lane_pair();
    const bool exists = mma_key_elements(kFormat) == kHeadDim || element < kHeadDim;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        u32 pairs[4] = {0, 0, 0, 0};
        if (rows.row[h] && exists) load16(pairs, rows.row[h] + element);
        if constexpr (kQuantBit == 4) interleave_pairs(pairs);
#pragma unroll
        for (int i = 0; i < 4; ++i) (i < 2 ? first : second)[i % 2 * 2 + h] = pairs[i] ^ rows.sign;
    }
}

KVJIT_INLINE char* shared_step(char* query, int step) {
    return query + (step * kWarpSize + lane_index()) * 16;
}

/// Loads the queries into registers, or long ones into shared memory. The block calls it together.
KVJIT_INLINE void load_query(QueryOperands& query, char* shared, const AttendWork& work) {
    const QueryRows rows = query_rows(work);
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) {
        if constexpr (!kQueryShared) {
            load_query_part(query.step[2 * part], query.step[2 * part + 1], rows, part);
        } else if (part % kAttendWarps == warp_index()) {
            load_query_part(query.step[0], query.step[1], rows, part);
            store16(shared_step(shared, 2 * part), query.step[0]);
            store16(shared_step(shared, 2 * part + 1), query.step[1]);
        }
    }
    if constexpr (kQueryShared) barrier();
}

// ---- Scores --------------------------------------------------------------------------------------------------------

inline constexpr int kScaleParts = kScalesApart ? kQuantGroup / 32 : 1;  // of one scale

/// The left operands of the two steps of part `part`: their place in query.step, where those of long rows are put
/// first.
KVJIT_INLINE int take_query_part(QueryOperands& query, const char* shared, int part) {
    if constexpr (!kQueryShared) return 2 * part;
    load16(query.step[0], shared_step(const_cast<char*>(shared), 2 * part));
    load16(query.step[1], shared_step(const_cast<char*>(shared), 2 * part + 1));
    return 0;
}

/// What sums of products with codes of a group begin with: the queries' products with -128.
struct FirstSums {
    float of_group[kSubnormalKeys ? kApartScales : 1][4];
};

KVJIT_INLINE void make_first_sums(FirstSums& first, QueryOperands& query, const char* shared) {
#pragma unroll
    for (float(&sums)[4] : first.of_group) sums[0] = sums[1] = sums[2] = sums[3] = 0.0f;
    if constexpr (kSubnormalKeys) {
#pragma unroll
        for (int part = 0; part < kKeyParts; ++part) {
            const int step = take_query_part(query, shared, part);
#pragma unroll
            for (int i = 0; i < 2; ++i)
                mma_16x8x16<T1>(first.of_group[part / kScaleParts], query.step[step + i], {kMinus128, kMinus128});
        }
    }
}

/// products += part `part` of the packed rows * that of the stage's keys 8n..8n+7, as far as these are scaled here.
KVJIT_INLINE void multiply_part(float (&products)[4], const u32 (&first)[4], const u32 (&second)[4], const Stage& stage,
                                int n, int part) {
    const i32 key = lane_row();
    const char* codes = stage.keys() + (key * Stage::kKeyStride + lane_pair() * kFragmentBytes) +
                        (8 * n * Stage::kKeyStride + 4 * part * kFragmentBytes);
    KeyPairs pairs;
    if constexpr (kScalesApart) {
        load_key_numbers(pairs.high, codes);
    } else {
        const char* scales = stage.key_scales() + key * Stage::kKeyScaleStride + 8 * n * Stage::kKeyScaleStride;
        load_key_pairs(pairs, codes, scale_of_fragment<4>(scales, 4 * part, lane_pair()));
    }
    mma_16x8x16<T1>(products, first, {pairs.high[0], pairs.high[1]});
    mma_16x8x16<T1>(products, second, {pairs.high[2], pairs.high[3]});
    if constexpr (kQuantised && !kScalesApart) {
        mma_16x8x16<T1>(products, first, {pairs.low[0], pairs.low[1]});
        mma_16x8x16<T1>(products, second, {pairs.low[2], pairs.low[3]});
    }
}

/// scores += products * the keys' scales of group `group`.
KVJIT_INLINE void add_scaled(Scores& scores, const Scores& products, const TileScales& scales, int group) {
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float scale = scales.of_keys[n].of(i, group);
#pragma unroll
            for (int h = 0; h < kRowTiles; ++h)
                scores.at(n, h, i) = fma(products.at(n, h, i), scale, scores.at(n, h, i));
        }
    }
}

/// Products of the packed rows with the keys of a stage.
KVJIT_INLINE void score_keys(Scores& scores, QueryOperands& query, const FirstSums& first, const char* shared,
                             const Stage& stage) {
    TileScales scales;
    if constexpr (kScalesApart) {
        scales.load<Stage::kKeyScaleStride>(stage.key_scales());
        for (PairScales& each : scales.of_keys) each.refuse_infinity();
    }
    Scores products;
    scores.clear();
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) {
        const int step = take_query_part(query, shared, part);
        if (part % kScaleParts == 0) {
            const float(&sums)[4] = first.of_group[kSubnormalKeys ? part / kScaleParts : 0];
            products.for_each([&](float& product, FragmentPlace at) { product = sums[2 * at.h + at.i]; });
        }
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n)
            multiply_part(kScalesApart ? products.c[n] : scores.c[n], query.step[step], query.step[step + 1], stage, n,
                          part);
        if (kScalesApart && part % kScaleParts == kScaleParts - 1)
            add_scaled(scores, products, scales, part / kScaleParts);
    }
}

// ---- Sums of values ------------------------------------------------------------------------------------------------

/// Sums of values: of matrix m the lane has elements value_element(m, h), for packed rows 8n + 2*lane_pair() + i.
using ValueSums = Fragment<kRowTiles>[kValueMatrices];

/// Matrices of a part, whose elements a lane takes together.
inline constexpr int kPartMatrices = kQuantised ? kValueSpan / 2 : 4;

/// Matrices of values that aren't quantised are 16 neighbouring elements. Quantised values are loaded kValueSpan
/// neighbours a lane, which are rows lane_row() and lane_row() + 8 of a part's matrices.
KVJIT_INLINE i32 value_element(int m, int h) {
    if constexpr (!kQuantised) return 16 * m + 8 * h + lane_row();
    return 8 * kValueSpan * (m / kPartMatrices) + kValueSpan * lane_row() + 2 * (m % kPartMatrices) + h;
}

/// Values of the stage's keys 16*step + 8*half + 2*lane_pair() and the next one, in pairs: the lane's elements of part
/// `part`, as codes are numbers or scaled.
KVJIT_INLINE void load_value_pairs(u32 (&pairs)[kValueSpan], const Stage& stage, int part, int step, int half) {
    const i32 key = 2 * lane_pair();
    const char* codes = stage.values() + (key * Stage::kValueStride + lane_row() * kValueSpanBytes) +
                        ((16 * step + 8 * half) * Stage::kValueStride + 8 * part * kValueSpanBytes);
    load_value_codes<Stage::kValueStride>(pairs, codes);
    if constexpr (!kScalesApart) {
        const char* scales =
            stage.value_scales() + key * Stage::kValueScaleStride + (16 * step + 8 * half) * Stage::kValueScaleStride;
        scale_value_pairs<Stage::kValueScaleStride>(pairs, scale_of_fragment<8>(scales, 8 * part, lane_row()));
    }
}

/// The left operands of the matrices of part `part`, elements by the stage's keys 16*step..16*step+15.
KVJIT_INLINE void load_value_matrices(u32 (&matrices)[kPartMatrices][4], const Stage& stage, int part, int step) {
    if constexpr (kQuantised) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            u32 pairs[kValueSpan];
            load_value_pairs(pairs, stage, part, step, half);
#pragma unroll
            for (int e = 0; e < kValueSpan; ++e) matrices[e / 2][2 * half + e % 2] = pairs[e];
        }
    } else {
        const i32 key = lane_index() % 8 + lane_index() / 16 * 8, element = lane_index() / 8 % 2 * 8;
        const char* row = stage.values() + key * Stage::kValueStride + 2 * element + 16 * step * Stage::kValueStride;
#pragma unroll
        for (int m = 0; m < 4; ++m)
            if (4 * part + m < kValueMatrices) load_matrices_transposed(matrices[m], row + 2 * (64 * part + 16 * m));
    }
}

/// Right operands of a step: the weights by which elements of part `part` are multiplied.
KVJIT_INLINE void weigh_part(u32 (&factors)[4], const Weights& weights, int part, int step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int n = 2 * step + i / 2, group = 8 * kValueSpan * part / kQuantGroup;
        factors[i] = weights.probabilities[step][i];
        if constexpr (kScalesApart) factors[i] = weights.scales.of_keys[n].weigh(factors[i], group);
    }
}

/// sums += the stage's values of 16 keys * their weights.
KVJIT_INLINE void add_values(ValueSums& sums, const Weights& weights, const Stage& stage, int step) {
#pragma unroll
    for (int part = 0; kPartMatrices * part < kValueMatrices; ++part) {
        u32 factors[4], matrices[kPartMatrices][4];
        weigh_part(factors, weights, part, step);
        load_value_matrices(matrices, stage, part, step);
#pragma unroll
        for (int m = 0; m < kPartMatrices; ++m) {
            if (kPartMatrices * part + m >= kValueMatrices) continue;
            if constexpr (kMaskRank > 0 && !kScalesApart) {
#pragma unroll
                for (int i = 0; i < 4; ++i) matrices[m][i] &= weights.seen[2 * step + i / 2];
            }
#pragma unroll
            for (int n = 0; n < kRowTiles; ++n)
                mma_16x8x16<T1>(sums[kPartMatrices * part + m].c[n], matrices[m], {factors[n], factors[n + 2]});
        }
    }
}

/// Loads the scales of the stage's values; 0 for keys that a mask hides from all rows.
KVJIT_INLINE void load_value_scales(Weights& weights, const Stage& stage) {
    weights.scales.load<Stage::kValueScaleStride>(stage.value_scales());
    if constexpr (kMaskRank > 0) {
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) weights.scales.of_keys[n].hide(weights.seen[n]);
    }
}

/// A number that the lane has for each of its rows of the scores, in the order of the sums' columns.
struct ColumnFactors {
    float column[kRowTiles][2];
};
KVJIT_INLINE ColumnFactors factors_of_columns(const float (&row_factors)[kRowTiles]) {
    ColumnFactors factors;
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) factors.column[n][i] = shuffle(row_factors[n], 4 * (2 * lane_pair() + i));
    }
    return factors;
}

/// sums *= rescale, row by row; skipped where all factors are 1, as for most tiles.
KVJIT_INLINE void rescale_sums(ValueSums& sums, const float (&rescale)[kRowTiles]) {
    bool is_one = true;
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n) is_one = is_one && rescale[n] == 1.0f;
    if (ballot(!is_one) == 0) return;
    const ColumnFactors factors = factors_of_columns(rescale);
#pragma unroll
    for (int m = 0; m < kValueMatrices; ++m)
        sums[m].for_each([&](float& sum, FragmentPlace at) { sum *= factors.column[at.n][at.i]; });
}

}  // namespace kvjit
