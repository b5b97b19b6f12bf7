// Merging partial results of attention over disjoint sets of keys. A part is (acc, max, sum):
//     max = largest score,  sum = sum_j exp(score_j - max),  acc = sum_j exp(score_j - max) v_j
// Parts are admitted one after the other, in ascending key order, to a running result of the same form. attend, chunk
// by chunk, and merge, from memory, both call these functions in that order, and so get the same bits.
#pragma once

#include "common/part.h"
#include "cpu/machine/vector.h"

namespace kvjit {

/// Factors of the running accumulator and of the part's.
struct Weights {
    float running;
    float part;
};

/// Admits a part (m, l) that is not empty to (M, L): M' = max(M, m), a = e^(M-M'), b = e^(m-M'), L' = L*a + l*b.
/// Returns (a, b), with which merge_acc then updates the accumulator.
KVJIT_INLINE Weights admit(Running& running, float part_max, float part_sum) {
    const float max = max_nan(running.max, part_max);
    // Two lanes are used. At another width exp would be compiled once more, beside softmax's.
    vf<kLanes> exponents(max);
    exponents[0] = running.max;
    exponents[1] = part_max;
    const vf<kLanes> weights = exp<kLanes>(exponents - max);
    running.max = max;
    running.sum = fma<kLanes>(vf<kLanes>(part_sum), vf<kLanes>(weights[1]), vf<kLanes>(running.sum * weights[0]))[0];
    return {weights[0], weights[1]};
}

/// ACC*a + acc*b.
template <int N>
KVJIT_INLINE vf<N> merge_acc(vf<N> running, vf<N> part, Weights weights) {
    const vf<N> kept = running * weights.running;
    return fma<N>(part, vf<N>(weights.part), kept);
}

/// `running` with the head's e^sink added to its sum, where the spec has sinks. The output's divisor includes it, lse
/// does not; a row without a key stays empty.
KVJIT_INLINE Running add_sink(Running running, const float* sinks, i64 head) {
    if constexpr (!kSinks) return running;
    if (!is_empty_part(running.max)) running.sum += exp<kLanes>(vf<kLanes>(sinks[head] - running.max))[0];
    return running;
}

/// ACC/L, the output before it is rounded to T1; 0 where no key was seen, whatever `running_acc` holds.
template <int N>
KVJIT_INLINE vf<N> finish_acc(vf<N> running_acc, const Running& running) {
    const vf<N> quotient = running_acc / vf<N>(running.sum);
    return is_empty_part(running.max) ? vf<N>(0.0f) : quotient;
}

/// log of the sum of exp of all scores, M + log L, rounded once; -inf where no key was seen.
KVJIT_INLINE float finish_lse(const Running& running) {
    if (is_empty_part(running.max)) return -kInfinity;
    return static_cast<float>(running.max + log(running.sum));
}

template <class T>
KVJIT_INLINE void merge_row(float* acc, const T* part, Weights weights) {
    for_each_vector_rolled<kHeadDim>(
        [&]<int N>(int d) { store<N>(acc + d, merge_acc<N>(load<N>(acc + d), load<N>(part + d), weights)); });
}

/// Admits the first part, with weights 0 and 1: a copy. (Adding 0 turns -0 into 0, as a merge would.) If its max isn't
/// finite, the weight is NaN, as e^(m-M') is.
template <class T>
KVJIT_INLINE void admit_first_row(float* acc, Running& running, const T* part, float part_max, float part_sum) {
    const float weight = 1.0f + (part_max - part_max);
    running = {part_max, part_sum * weight + 0.0f};
    for_each_vector_rolled<kHeadDim>(
        [&]<int N>(int d) { store<N>(acc + d, fma<N>(load<N>(part + d), vf<N>(weight), vf<N>(0.0f))); });
}

/// Admits a part that attention computed. `acc`: the running accumulator; before the first part it may hold anything.
template <class T>
KVJIT_INLINE void admit_row(float* acc, Running& running, const T* part, float part_max, float part_sum) {
    if (is_empty_part(part_max)) return;
    if (is_empty_part(running.max)) return admit_first_row(acc, running, part, part_max, part_sum);
    merge_row(acc, part, admit(running, part_max, part_sum));
}

/// Admits a part that the caller passes as (output, lse). An lse of -inf or, as other libraries have it, +inf means "no
/// key": the weight is 0, and still multiplies the output, so that a NaN in it shows.
template <class T>
KVJIT_INLINE void admit_output(float* acc, Running& running, const T* output, float lse) {
    const bool no_key = lse == -kInfinity || lse == kInfinity;
    merge_row(acc, output, no_key ? Weights{1.0f, 0.0f} : admit(running, lse, 1.0f));
}

/// Output row of kHeadDim elements of T, each rounded once.
template <class T>
KVJIT_INLINE void finish_row(T* out, const float* acc, const Running& running) {
    for_each_vector_rolled<kHeadDim>(
        [&]<int N>(int d) { store<N>(out + d, finish_acc<N>(load<N>(acc + d), running)); });
}

}  // namespace kvjit
