// Pairs of T1, float16 or bfloat16, in a register: what matrix products take. The low half is the first of a pair.
#pragma once

#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/machine/contract.h"

namespace kvjit {

static_assert(kSame<T1, f16_t> || kSame<T1, bf16_t>);
inline constexpr bool kBfloat16 = kSame<T1, bf16_t>;

KVJIT_INLINE u32 pack_pair(float low, float high) {
    return kBfloat16 ? pack_bfloat16s(low, high) : pack_halves(low, high);
}
KVJIT_INLINE float low_of_pair(u32 pair) {
    const u16 low = static_cast<u16>(pair);
    return kBfloat16 ? bfloat16_to_float(low) : half_to_float(low);
}
KVJIT_INLINE float high_of_pair(u32 pair) {
    return low_of_pair(pair >> 16);
}

/// a*b + c, rounded once.
KVJIT_INLINE u32 fma_pairs(u32 a, u32 b, u32 c) {
    return kBfloat16 ? bfloat162_fma(a, b, c) : half2_fma(a, b, c);
}
/// a*b; GPUs before sm_90 have no product of bfloat16 but a sum's.
KVJIT_INLINE u32 multiply_pairs(u32 a, u32 b) {
    return kBfloat16 ? bfloat162_fma(a, b, 0x80008000) : half2_mul(a, b);
}
KVJIT_INLINE u32 negate_pairs(u32 pairs) {
    return kBfloat16 ? bfloat162_negate(pairs) : half2_negate(pairs);
}
/// a - b
KVJIT_INLINE u32 subtract_pairs(u32 a, u32 b) {
    return kBfloat16 ? bfloat162_fma(a, 0x3f803f80, bfloat162_negate(b)) : half2_sub(a, b);
}

/// The pairs (low half of a, low half of b) and (high half of a, high half of b).
KVJIT_INLINE u32 pair_lows(u32 a, u32 b) {
    return permute_bytes(a, b, 0x5410);
}
KVJIT_INLINE u32 pair_highs(u32 a, u32 b) {
    return permute_bytes(a, b, 0x7632);
}

}  // namespace kvjit
