// Formats of cache rows, and the arithmetic of quantisation (docs/semantics.md, section 6), for scalars and vectors of
// either backend: V is float or a vector of floats. The backend defines round_to.
#pragma once

#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

/// How a cache writes a row of kHeadDim elements.
template <class Element, class Scale, int kBits, int kGroupElements>
struct RowFormat {
    using T2 = Element;
    using T3 = Scale;  // unused in a row that isn't quantised
    static constexpr bool kQuantised = kBits != 0;
    static constexpr int kQuantGroup = kGroupElements;
    /// A row that isn't quantised has no scales; 1 keeps arrays and divisions valid.
    static constexpr int kScales = kQuantised ? kHeadDim / kQuantGroup : 1;
    static constexpr float kQuantMax = kBits == 4 ? 7.0f : 127.0f;

    static_assert(kHeadDim % 8 == 0);
    static_assert(kBits == 0 || (kBits == 8 && kSame<T2, i8_t>) || (kBits == 4 && kSame<T2, i4x2_t>));
    static_assert(!kQuantised || (kHeadDim % kQuantGroup == 0 && !kSame<T1, i8_t>));
    static_assert(kQuantised || kSame<T1, i8_t> == kSame<T2, i8_t>);
};
/// Rows of the program's cache.
using CacheRow = RowFormat<T2, T3, kQuantBit, kQuantGroup>;

inline constexpr bool kQuantised = CacheRow::kQuantised;
inline constexpr int kScalesPerRow = CacheRow::kScales;
inline constexpr float kScaleFloor = 1e-5f;

/// x rounded to T, to nearest even, as float32.
template <class T, class V>
KVJIT_INLINE V round_to(V x);

/// The stored scale, as float32, of a group whose max|x| is `largest`; NaN if that is NaN or infinite.
///     s = T3( max( largest / qmax, 1e-5 ) ), saturating
template <class Row, class V>
KVJIT_INLINE V quant_scale(V largest) {
    using Scale = typename Row::T3;
    V scale = largest / V(Row::kQuantMax);
    scale = scale > V(kScaleFloor) ? scale : V(kScaleFloor);
    scale = scale < V(element_of<Scale>().largest) ? scale : V(element_of<Scale>().largest);
    return largest <= V(element_of<float>().largest) ? round_to<Scale>(scale) : V(kNan);
}

/// Whether |x| / scale may round to more than qmax in a group of finite numbers: only where the scale has saturated,
/// which takes inputs with a larger range than scales have. Otherwise rounding lowers a scale by 0.3% at most.
template <class Row>
inline constexpr bool kClamps = element_of<T1>().largest > element_of<typename Row::T3>().largest;

/// clamp(round_half_even(q), -qmax, qmax) + kRoundMagic, q = x / scale rounded to float32: the code is the result's
/// bits minus kRoundMagicBits. Clamping before rounding is the same, as qmax is an integer. NaN q gives any code.
template <class Row, class V>
KVJIT_INLINE V quant_code_magic(V q) {
    if constexpr (kClamps<Row>) {
        q = q < V(Row::kQuantMax) ? q : V(Row::kQuantMax);
        q = q > V(-Row::kQuantMax) ? q : V(-Row::kQuantMax);
    }
    return q + V(kRoundMagic);
}

}  // namespace kvjit
