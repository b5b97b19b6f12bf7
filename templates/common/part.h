// Partial results of attention over some of a row's keys: docs/semantics.md, section 2, Merge.
#pragma once

#include "common/types.h"

namespace kvjit {

/// The largest score of the keys so far, and the sum of exp(score - max). Starts as no_key().
struct Running {
    float max;
    float sum;
};
KVJIT_INLINE Running no_key() {
    return {-kInfinity, 0.0f};
}

/// A part that saw no key (max -inf) is left out: its acc and sum may hold anything.
KVJIT_INLINE bool is_empty_part(float part_max) {
    return part_max == -kInfinity;
}

/// A part's max, but NaN where its sum is: all scores may be NaN, which leaves max at -inf, the mark of "no key".
KVJIT_INLINE float part_max(float max, float sum) {
    return sum == sum ? max : kNan;
}

}  // namespace kvjit
