// Quantisation arithmetic (docs/semantics.md, section 6), once for scalars and vectors of either backend. V is float or
// a vector of floats; the backend defines round_to.
#pragma once

#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

inline constexpr bool kQuantised = kQuantBit != 0;
/// Scales of one cache row. A cache that isn't quantised has none; 1 keeps arrays and divisions valid.
inline constexpr int kScalesPerRow = kQuantised ? kHeadDim / kQuantGroup : 1;
inline constexpr float kQuantMax = kQuantBit == 4 ? 7.0f : 127.0f;
inline constexpr float kScaleFloor = 1e-5f;

/// x rounded to T, nearest even, as float32.
template <class T, class V>
KVJIT_INLINE V round_to(V x);

/// The scale that is stored, as float32, for a group whose max|x| is `largest`; NaN if that is NaN or infinite.
///     s = T3( max( largest / qmax, 1e-5 ) ), saturating
template <class V>
KVJIT_INLINE V quant_scale(V largest) {
    V scale = largest / V(kQuantMax);
    scale = scale > V(kScaleFloor) ? scale : V(kScaleFloor);
    scale = scale < V(element_of<T3>().largest) ? scale : V(element_of<T3>().largest);
    return largest <= V(element_of<float>().largest) ? round_to<T3>(scale) : V(kNan);
}

/// clamp(round_half_even(x / scale), -qmax, qmax) + kRoundMagic: the code is the sum's bits minus kRoundMagicBits.
/// Clamping first is the same, because qmax is an integer. A NaN scale gives code 0.
template <class V>
KVJIT_INLINE V quant_code_magic(V x, V scale) {
    V q = x / scale;
    q = q < V(kQuantMax) ? q : V(kQuantMax);
    q = q > V(-kQuantMax) ? q : V(-kQuantMax);
    return scale == scale ? q + V(kRoundMagic) : V(kRoundMagic);
}

}  // namespace kvjit
