// The numbers that softmax works on: scores, or the products that scores would be made of.
#pragma once

#include "common/abi.h"
#include "common/score.h"

namespace kvjit {

/// Whether products are these numbers: where nothing but a positive softmax_scale makes a score. A very small one would
/// let differences of products overflow, a very large one would overflow as a factor to base 2.
KVJIT_INLINE bool takes_products(const abi::AttendArgs& args) {
    const float scale = args.score.softmax_scale;
    return !kModified && scale >= 0x1p-120f && scale <= 0x1p126f;
}
/// Times which numbers are scores.
KVJIT_INLINE float number_factor(const abi::AttendArgs& args) {
    return takes_products(args) ? args.score.softmax_scale : 1.0f;
}

}  // namespace kvjit
