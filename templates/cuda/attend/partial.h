// Merging partial results of attention over disjoint sets of keys. A part is (acc, max, sum):
//     max = largest score,  sum = sum_j exp(score_j - max),  acc = sum_j exp(score_j - max) v_j
// Of tensor cores max is a rounded product, and sum and acc are relative to that (FinishedState, mma/softmax.h).
// A warp has a row of kHeadDim elements spread over its lanes, or a thread has a piece of one. Either merges a row's
// parts in ascending order, so that it changes no bit which warp or thread merges, and when.
#pragma once

#include "common/part.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache/row_lanes.h"

namespace kvjit {

/// warp_index() and lane_index() for what follows a loop over tiles: computed anew, as they would take a register all
/// through the loop, or memory.
KVJIT_INLINE i32 later_warp() {
    return opaque(thread_index()) / kWarpSize;
}
KVJIT_INLINE i32 later_lane() {
    return opaque(thread_index()) % kWarpSize;
}

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.693147181f;

KVJIT_INLINE float exp(float v) {
    return exp2(v * kLog2E);
}

template <class V>
KVJIT_INLINE V exp_of(V v) {
    return exp(v);
}

template <class V>
KVJIT_INLINE V quotient_of(V a, V b) {
    return a * reciprocal(b);
}

/// Natural logarithm.
KVJIT_INLINE float log(float v) {
    return log2(v) * kLn2;
}

/// Weight of a part whose largest score is part_max; `max` is the largest score of all parts.
KVJIT_INLINE float part_weight(float part_max, float max) {
    return is_empty_part(part_max) ? 0.0f : exp(part_max - max);
}

/// `running` with the head's e^sink added to its sum, where the spec has sinks. The output's divisor includes it, lse
/// does not; a row without a key stays empty.
KVJIT_INLINE Running add_sink(Running running, const float* sinks, i64 head) {
    if constexpr (!kSinks) return running;
    if (!is_empty_part(running.max)) running.sum += exp(sinks[head] - running.max);
    return running;
}

/// log of the sum of exp of all scores; -inf where no key was seen.
KVJIT_INLINE float finish_lse(Running running) {
    return is_empty_part(running.max) ? -kInfinity : running.max + log(running.sum);
}

/// Writes what the caller has of an output row of kHeadDim elements of T: acc * (1/sum), 0 where no key was seen. Row:
/// a RowLanes or a RowPiece.
template <class T, class Row>
KVJIT_INLINE void finish_row(T* out, Row acc, Running running) {
    const float factor = reciprocal(running.sum);
    for_each_element(acc, [&](float& element) { element = is_empty_part(running.max) ? 0.0f : element * factor; });
    store_row(out, acc);
}

/// The largest of the parts' maxima, NaN if one is; stat(part) gives a part's Running.
template <class Stat>
KVJIT_INLINE float largest_max(i64 parts, Stat&& stat) {
    float max = -kInfinity;
#pragma unroll 1
    for (i64 part = later_lane(); part < parts; part += kWarpSize) max = max_nan(max, stat(part).max);
#pragma unroll
    for (i32 mask = 1; mask < kWarpSize; mask *= 2) max = max_nan(max, shuffle_xor(max, mask));
    return max;
}

/// Parts whose rows are loaded before the first of them is added: other blocks' rows come from memory or L2,
/// hundreds of cycles away, and a merge has few warps to wait beside. Divides kWarpSize.
inline constexpr i32 kPartsAhead = 4;

/// Merges parts 0..parts-1 of one row: returns max and sum, and sets `acc` to the weighted sum of rows.
///     stat(part) -> Running,  row(part) -> const T*, kHeadDim elements
/// kReadEmpty: rows of parts that saw no key exist, too, and are added with weight 0, so that a NaN in them shows.
template <bool kReadEmpty = false, class Stat, class Row>
KVJIT_INLINE Running merge_parts(RowLanes& acc, i64 parts, Stat&& stat, Row&& row) {
    Running merged = {largest_max(parts, stat), 0.0f};
    clear_lanes(acc);
#pragma unroll 1
    for (i64 first = 0; first < parts; first += kWarpSize) {
        // A lane for each part, so that each weight is computed once.
        const i64 own = first + later_lane();
        const Running running = own < parts ? stat(own) : no_key();
        const float weight = part_weight(running.max, merged.max);
        const i32 count = static_cast<i32>(parts - first < kWarpSize ? parts - first : kWarpSize);
        // Not unrolled further: it would take NVRTC longer. Parts past `count` are empty, and those take no branch, but
        // add zeros.
#pragma unroll 1
        for (i32 k = 0; k < count; k += kPartsAhead) {
            RowLanes rows[kPartsAhead];
#pragma unroll
            for (i32 i = 0; i < kPartsAhead; ++i) {
                const bool is_read = kReadEmpty ? k + i < count : !is_empty_part(shuffle(running.max, k + i));
                load_lanes(rows[i], row(first + k + i), is_read);
            }
#pragma unroll
            for (i32 i = 0; i < kPartsAhead; ++i) {
                const float factor = shuffle(weight, k + i);
                add_weighted(acc, rows[i], factor);
                merged.sum = fma(shuffle(running.sum, k + i), factor, merged.sum);
            }
        }
    }
    return merged;
}

/// merge_parts of the thread's piece of a row, by itself: the same bits. Parts that saw no key are not read.
template <class Stat, class Row>
KVJIT_INLINE Running merge_piece(RowPiece& acc, i32 parts, Stat&& stat, Row&& row) {
    const auto load_states = [&](Running(&states)[kPartsAhead], i32 first) {
#pragma unroll
        for (i32 i = 0; i < kPartsAhead; ++i) states[i] = first + i < parts ? stat(first + i) : no_key();
    };
    Running merged = no_key();
#pragma unroll 1
    for (i32 first = 0; first < parts; first += kPartsAhead) {
        Running states[kPartsAhead];
        load_states(states, first);
#pragma unroll
        for (const Running& state : states) merged.max = max_nan(merged.max, state.max);
    }
#pragma unroll
    for (float& element : acc.elements) element = 0.0f;
#pragma unroll 1
    for (i32 first = 0; first < parts; first += kPartsAhead) {
        Running states[kPartsAhead];
        RowPiece pieces[kPartsAhead];
        load_states(states, first);
#pragma unroll
        for (i32 i = 0; i < kPartsAhead; ++i) {
            pieces[i].first = acc.first;
            load_piece(pieces[i], row(first + i), !is_empty_part(states[i].max));
        }
#pragma unroll
        for (i32 i = 0; i < kPartsAhead; ++i) {
            const float weight = part_weight(states[i].max, merged.max);
            add_weighted(acc, pieces[i], weight);
            merged.sum = fma(states[i].sum, weight, merged.sum);
        }
    }
    return merged;
}

}  // namespace kvjit
