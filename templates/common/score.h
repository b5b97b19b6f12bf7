// From q·k to the score that the softmax takes: scale, soft cap, mask, ALiBi, and the keys that a query sees at all
// (docs/semantics.md, section 3). A further modification of scores belongs in modify_score and kModified. V is float or
// a vector of floats; what each backend computes in its own way is declared here and defined there.
#pragma once

#include "common/abi.h"
#include "common/indices.h"
#include "common/key_range.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

/// A sequence of the call: `tokens` new tokens (n), whose query rows begin at query_begin, and `keys` keys (m), whose
/// columns of the mask begin at key_begin.
struct CallSequence {
    i64 query_begin, tokens;
    i64 key_begin, keys;
    Reach reach;
};

/// The batch's window; no limit where the spec has none.
KVJIT_INLINE Reach window_of(const abi::AttendArgs& args) {
    if constexpr (kWindow)
        return {args.score.window_left, args.score.window_right};
    else
        return {abi::kNoLimit, abi::kNoLimit};
}

KVJIT_INLINE CallSequence sequence_of(const abi::AttendArgs& args, i64 b) {
    return {index_at(args.seqstarts, b), length(args.seqstarts, b), key_begin(args.keys, b), key_count(args.keys, b),
            reach_of(window_of(args), kCausal, kAlibi, b < args.decoding_batches)};
}

/// Position of new token i among the keys, bottom-right aligned: dist = j - query_position. Negative where m < n.
KVJIT_INLINE i64 query_position(const CallSequence& sequence, i64 i) {
    return sequence.keys - sequence.tokens + i;
}

/// The keys that new token i sees by their positions; the mask may hide more.
KVJIT_INLINE KeyRange visible_keys(const CallSequence& sequence, i64 i) {
    return keys_in_reach(sequence.keys, query_position(sequence, i), sequence.reach);
}

/// The mask of (query head, new token i) from key `first` on.
KVJIT_INLINE const T1* mask_row(const abi::AttendArgs& args, const CallSequence& sequence, i64 head, i64 i, i64 first) {
    const i64 row = (sequence.query_begin + i) * args.mask_row_stride;
    return reinterpret_cast<const T1*>(args.mask + head * args.mask_head_stride + row) + sequence.key_begin + first;
}

/// Slope of ALiBi, 0 where the spec has none.
KVJIT_INLINE float alibi_slope(const abi::AttendArgs& args, i64 head) {
    if constexpr (kAlibi)
        return args.slopes[head];
    else
        return 0.0f;
}

/// Whether a score is more than the product times softmax_scale. Where it isn't, programs of tensor cores skip
/// modify_score.
inline constexpr bool kModified = kMaskRank > 0 || kAlibi || kSoftCap;

/// e^x; the backend defines it.
template <class V>
KVJIT_INLINE V exp_of(V x);

/// a / b to 2^-21, relative, for b from 1 to 2; the backend defines it.
template <class V>
KVJIT_INLINE V quotient_of(V a, V b);

/// tanh(x) to a few ulp; NaN stays. A polynomial below 0.5, where 1 - e^-2|x| would lose digits.
template <class V>
KVJIT_INLINE V tanh(V x) {
    const V square = x * x, size = x < V(0.0f) ? -x : x, rest = exp_of(V(-2.0f) * size);
    const V far = quotient_of(V(1.0f) - rest, V(1.0f) + rest);
    const V tail = ((V(0.01798874f) * square + V(-0.05338711f)) * square + V(0.13330476f)) * square + V(-0.33333311f);
    const V near = x + x * square * tail;
    return size < V(0.5f) ? near : x < V(0.0f) ? -far : far;
}

/// Terms of a score that all rows and keys of the call share.
template <class V>
struct ScoreTerms {
    V scale;  // what products are multiplied by: softmax_scale, with soft caps softmax_scale / soft_cap
    V soft_cap;
};
/// unit: what products are to be multiplied by besides.
template <class V>
KVJIT_INLINE ScoreTerms<V> score_terms(const abi::AttendArgs& args, float unit = 1.0f) {
    const float scale = args.score.softmax_scale, soft_cap = args.score.soft_cap;
    if constexpr (!kSoftCap) return {V(scale * unit), V(soft_cap)};
    // Of caps that are as good as none a smaller one has the same scores, and its quotient isn't subnormal.
    const float size = scale < 0.0f ? -scale : scale, most = 0x1p100f * size;
    const float cap = size > 0.0f && most < soft_cap ? most : soft_cap;
    // Finite, so that a product of 0 has the score 0 with the smallest caps, too.
    constexpr float kMost = 0x1.fffffep+127f;
    const float ratio = scale / cap * unit;
    return {V(ratio > kMost ? kMost : ratio < -kMost ? -kMost : ratio), V(cap)};
}

/// cap(dot * softmax_scale) + mask + slope * distance, with cap(x) = soft_cap * tanh(x / soft_cap). Terms that the spec
/// lacks are left out.
template <class V>
KVJIT_INLINE V modify_score(V dot, const ScoreTerms<V>& rule, V mask, V slope, V distance) {
    V score = dot * rule.scale;
    if constexpr (kSoftCap) score = rule.soft_cap * tanh(score);
    if constexpr (kMaskRank > 0) score = score + mask;
    if constexpr (kAlibi) score = score + slope * distance;
    return score;
}

/// A mask of -inf hides the key whatever its score is, NaN included.
template <class V>
KVJIT_INLINE V apply_hiding(V score, V mask) {
    if constexpr (kMaskRank > 0)
        return mask == V(-kInfinity) ? V(-kInfinity) : score;
    else
        return score;
}

}  // namespace kvjit
