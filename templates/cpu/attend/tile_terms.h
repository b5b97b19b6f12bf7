// The numbers that AMX multiplies: pairs of bfloat16. A number that is no bfloat16 is given by two (split.h). Queries
// and keys have pairs of neighbouring elements, probabilities and values those of an even key and the next.
#pragma once

#include "common/abi.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

/// Terms of bfloat16 that a number is given by. Where T1 is bfloat16, probabilities and values are rounded to it.
template <class T>
inline constexpr int kTerms = kSame<T, bf16_t> ? 1 : 2;
inline constexpr int kQueryTerms = kTerms<T1>, kKeyTerms = kTerms<T2>;
inline constexpr int kProbabilityTerms = kTerms<T1>, kValueTerms = kQueryTerms == 1 ? 1 : kTerms<T2>;

/// Elements of a row, padded with zeros to whole tiles, and pairs of them.
inline constexpr int kWideDim = (kHeadDim + 31) / 32 * 32;
inline constexpr int kRowPairs = kWideDim / 2;
/// Pairs from one packed key to the next. A power of two would crowd a few sets of the processor's cache.
inline constexpr int kKeyStride = kKeyTerms * kRowPairs + 16;
/// Keys that one product of tiles sums over. Blocks are widened to multiples of them.
inline constexpr int kStepKeys = 32;
/// Keys of a part of a block: so few that their scores stay in the first-level cache until they are probabilities.
inline constexpr int kPartKeys = 2 * kStepKeys;

}  // namespace kvjit
