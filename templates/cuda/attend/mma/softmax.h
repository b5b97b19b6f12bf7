// Attention of a tile of 8 or 16 packed rows by matrix products of 16 x 8 x 16: masks and online softmax of the scores,
// a Fragment whose columns are keys.
#pragma once

#include "common/score.h"
#include "cuda/attend/mma/accumulator.h"
#include "cuda/attend/mma/operands.h"
#include "cuda/attend/partial.h"
#include "cuda/attend/work.h"

namespace kvjit {

static_assert(kQuantised || kSame<T1, T2>);

/// How products become probabilities: score = modify_score(product, ...), p = 2^(score * factor - max * factor). Scores
/// that aren't modified stay products: `factor` then includes the scale, which saves a multiplication.
struct ProductRule {
    ScoreTerms<float> score;
    float factor;
};

/// A negative scale's sign goes to the queries (query_sign). The factor isn't 0, with which a hidden key's -inf would
/// become NaN: softmax_scale isn't, and subnormal numbers stay what they are. Products are to be multiplied by `unit`.
KVJIT_INLINE ProductRule product_rule(const AttendWork& work, float unit = kFragmentUnit) {
    const ScoreTerms<float> score = score_terms<float>(work.args, unit);
    if constexpr (kModified) return {score, kLog2E};
    return {score, (score.scale < 0.0f ? -score.scale : score.scale) * kLog2E};
}

/// Sign bits that pairs of query elements are XORed with.
KVJIT_INLINE u32 query_sign(const AttendWork& work) {
    return !kModified && work.args.score.softmax_scale < 0.0f ? 0x80008000 : 0;
}

// ---- Rows ----------------------------------------------------------------------------------------------------------

/// Terms of a row's scores beside the products.
struct RowTerms {
    i32 position;    // ALiBi, window: of the query among the keys
    float slope;     // ALiBi
    const T1* mask;  // of key 0
};

/// A lane's rows of a tile: g, and, where tiles have 16 rows, g + 8.
template <int kRows>
struct TileRowsOf {
    ShortRange seen[kRows];
    RowTerms terms[kRows];
};
using TileRows = TileRowsOf<2>;

inline constexpr bool kRowTerms = kModified || kWindow;

/// The block's keys that packed row `row` sees by their positions; none if there is no such row.
KVJIT_INLINE ShortRange seen_by_row(const AttendWork& work, i64 row) {
    if (row >= work.row_end) return {0, 0};
    return short_range(common_part(work.seen_by(row), work.keys));
}

KVJIT_INLINE RowTerms terms_of_row(const AttendWork& work, i64 row) {
    const i64 last = row < work.row_end ? row : work.row_end - 1, token = work.token(last), head = work.head(last);
    RowTerms terms = {0, 0.0f, nullptr};
    if constexpr (kAlibi || kWindow) terms.position = static_cast<i32>(query_position(work.sequence, token));
    if constexpr (kAlibi) terms.slope = alibi_slope(work.args, head);
    if constexpr (kMaskRank > 0) terms.mask = mask_row(work.args, work.sequence, head, token, 0);
    return terms;
}

// ---- Scores, mask --------------------------------------------------------------------------------------------------

/// The mask of a row and key; -inf, without reading it, for a key that the row doesn't see.
template <int kRows>
KVJIT_INLINE float mask_of(const TileRowsOf<kRows>& rows, int h, i32 key) {
    if constexpr (kMaskRank == 0) return 0.0f;
    if (!rows.seen[h].holds(key)) return -kInfinity;
    return load_one(rows.terms[h].mask + key);
}

/// Turns products with kTiles * 8 keys from `first` on into scores, -inf where hidden. whole: all rows see all keys.
/// Rows of a lane from `used` on don't exist, and their scores may be anything.
template <int kTiles, int kRows>
KVJIT_INLINE void modify_tile(Fragment<kTiles>& scores, const TileRowsOf<kRows>& rows, ProductRule rule, i32 first,
                              bool whole, int used = kRows) {
    if constexpr (kModified) {
        // Distances of ALiBi from the lane's first key: a conversion takes longer than a sum. The sums are exact to
        // 2^24 keys; further distances are rounded twice, to within 2^-23 of them.
        float nearest[kRows] = {};
        if constexpr (kAlibi) {
#pragma unroll
            for (int h = 0; h < kRows; ++h)
                nearest[h] = static_cast<float>(first + 2 * lane_pair() - rows.terms[h].position);
        }
        scores.for_each([&](float& score, FragmentPlace at) {
            if (at.h >= kRows || (kSoftCap && at.h >= used)) return;  // other terms take less than a branch
            const i32 key = first + at.column();
            const float mask = mask_of(rows, at.h, key);
            const float distance = kAlibi ? nearest[at.h] + static_cast<float>(at.distance()) : 0.0f;
            const float slope = kAlibi ? rows.terms[at.h].slope : 0.0f;
            score = apply_hiding(modify_score(score, rule.score, mask, slope, distance), mask);
        });
    }
    if (whole || kMaskRank > 0) return;  // mask_of hides keys that rows don't see
#pragma unroll
    for (int h = 0; h < kRows; ++h) {
        const i32 own = first + 2 * lane_pair();
        const ShortRange seen = {rows.seen[h].begin - own, rows.seen[h].end - own};
        scores.for_row(h, [&](float& score, FragmentPlace at) {
            if (!seen.holds(at.distance())) score = -kInfinity;
        });
    }
}

// ---- Online softmax ------------------------------------------------------------------------------------------------

/// Probabilities are scaled by 2^15: as float16 they then keep all 11 bits down to 2^-29 of the largest. bfloat16 has
/// float32's exponents, and needs no such scale.
inline constexpr float kHeadroom = kBfloat16 ? 0.0f : 15.0f;

/// The exponent that a row's probabilities are relative to: p = 2^(score * factor - base), which is 2^headroom at most,
/// but for what rounding of the base adds: a factor of less than 2.
KVJIT_INLINE float base_of(float max, float factor, float headroom) {
    return max == -kInfinity ? 0.0f : fma(max, factor, -headroom);
}

/// Rescale factor of the running sums, computed from the rounded bases because the probabilities were. Exactly 1 if the
/// largest score hasn't changed.
KVJIT_INLINE float rescale_of(float old_max, float max, float base, float factor, float headroom) {
    // Masks leave no registers for what is faster than a branch.
    if constexpr (kMaskRank > 0) {
        if (old_max == max) return 1.0f;
        return old_max == -kInfinity ? 0.0f : exp2(base_of(old_max, factor, headroom) - base);
    }
    const float scaled = exp2(base_of(old_max, factor, headroom) - base);
    return old_max == max ? 1.0f : old_max == -kInfinity ? 0.0f : scaled;
}

/// Of each of a lane's rows: largest score so far, the same in the 4 lanes of the row, and the lane's own part of the
/// sum of probabilities.
template <int kRows>
struct RowStateOf {
    float max[kRows], sum[kRows];

    KVJIT_INLINE RowStateOf() {
#pragma unroll
        for (int h = 0; h < kRows; ++h) {
            max[h] = -kInfinity;
            sum[h] = 0.0f;
        }
    }
};
using RowState = RowStateOf<2>;

template <class F>
KVJIT_INLINE float fold_row(float v, F&& f) {
    v = f(v, shuffle_xor(v, 1));
    return f(v, shuffle_xor(v, 2));
}

/// Both rows' largest of their 4 lanes, in three exchanges: lanes of odd number take the second row first. Neither is
/// known before both are, so that ptxas can't begin with the exponents of one row and delay the other's.
KVJIT_INLINE void fold_max(float (&max)[2]) {
    const bool odd = lane_pair() % 2 != 0;
    float own = max_nan(odd ? max[1] : max[0], shuffle_xor(odd ? max[0] : max[1], 1));
    own = max_nan(own, shuffle_xor(own, 2));
    const float other = shuffle_xor(own, 1);
    max[0] = odd ? other : own;
    max[1] = odd ? own : other;
}

/// The largest of the lane's scores in row h and of `max`, by kChains chains of dependent instructions.
template <int kChains, int kTiles>
KVJIT_INLINE float lane_max(const Fragment<kTiles>& scores, int h, float max) {
    float chain[kChains];
#pragma unroll
    for (int i = 0; i < kChains; ++i) chain[i] = max;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
        float& largest = chain[n % kChains];
        largest = max_nan(largest, max_nan(scores.at(n, h, 0), scores.at(n, h, 1)));
    }
#pragma unroll
    for (int i = 1; i < kChains; ++i) chain[0] = max_nan(chain[0], chain[i]);
    return chain[0];
}

/// Turns scores into probabilities. The caller is to multiply the running sums of values by `rescale`. Rows of a lane
/// from `used` on don't exist: their scores stay. kTogether: all rows' maxima come before the first exponent. That is
/// faster for a warp alone on its scheduler; others fill each other's waits.
template <bool kTogether = false, int kTiles, int kRows>
KVJIT_INLINE void exponentiate_tile(Fragment<kTiles>& scores, RowStateOf<kRows>& state, float factor,
                                    float (&rescale)[kRows], float headroom = kHeadroom, int used = kRows) {
    float max[kRows];
    if constexpr (kTogether) {
#pragma unroll
        for (int h = 0; h < kRows; ++h) max[h] = lane_max<2>(scores, h, state.max[h]);
        fold_max(max);
    }
#pragma unroll
    for (int h = 0; h < kRows; ++h) {
        rescale[h] = 1.0f;
        if (h >= used) continue;
        if constexpr (!kTogether)
            max[h] = fold_row(lane_max<1>(scores, h, state.max[h]), [](float a, float b) { return max_nan(a, b); });
        const float base = base_of(max[h], factor, headroom);
        rescale[h] = rescale_of(state.max[h], max[h], base, factor, headroom);
        float sum = 0.0f;
        scores.for_row(h, [&](float& score, FragmentPlace) {
            score = exp2(fma(score, factor, -base));
            sum += score;
        });
        state.max[h] = max[h];
        state.sum[h] = fma(state.sum[h], rescale[h], sum);
    }
}

/// sums *= rescale, row by row; skipped where all factors are 1, as for most tiles.
template <int kTiles>
KVJIT_INLINE void scale_sums(Fragment<kTiles>& sums, const float (&rescale)[2]) {
    if (ballot(rescale[0] != 1.0f || rescale[1] != 1.0f) == 0) return;
    sums.for_each([&](float& sum, FragmentPlace at) { sum *= rescale[at.h]; });
}

// ---- Keys that a mask hides from all rows: their values must not reach a product -----------------------------------

/// A half word for each of the lane's two keys in score tile n: all ones if some row of the tile, which has `rows` * 8
/// rows, sees the key, else 0.
template <int kTiles>
KVJIT_INLINE u32 seen_pair(const Fragment<kTiles>& scores, int n, int rows = 2) {
    u32 seen = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const u32 lanes = ballot(scores.at(n, 0, i) != -kInfinity || (rows > 1 && scores.at(n, 1, i) != -kInfinity));
        if (lanes & 0x11111111u << lane_pair()) seen |= 0xffffu << 16 * i;
    }
    return seen;
}

// ---- Output --------------------------------------------------------------------------------------------------------

/// max and sum of the lane's row h over all of its lanes, and a weight for its sums of values. Bases are rounded (by up
/// to 2^-8 where scores are large), and differently in each part of a row; so sums, which are relative to their base,
/// are made relative to `max`, the largest score in natural units, with weight = 2^(base - max * log2 e).
struct FinishedState {
    Running running;
    float weight;
};
template <int kRows>
KVJIT_INLINE FinishedState finish_state(const RowStateOf<kRows>& state, float factor, int h,
                                        float headroom = kHeadroom) {
    const float sum = fold_row(state.sum[h], [](float a, float b) { return a + b; });
    if (is_empty_part(state.max[h])) return {{-kInfinity, sum}, 1.0f};
    const float max = state.max[h] * (factor * kLn2);
    const float weight = exp2(-fma(max, kLog2E, -base_of(state.max[h], factor, headroom)));
    return {{max, sum * weight}, weight};
}

}  // namespace kvjit
