// The numbers that products of bytes multiply: codes of the cache, and digits of queries and of values' weights. How
// digits lie is the variant's, which includes digit_words.h or digit_rows.h before decode_bytes.h: they define
// QueryDigits, those of a tile's queries in the order of a key's words (where a byte has two codes, a key's word has
// the elements of two words of digits, first those of the bytes' lower codes), and WeightDigits, those of the weights
// of a block of values.
#pragma once

#include "cpu/attend/decode_tile.h"

namespace kvjit {

inline constexpr int kDigits = 3;
/// Codes in a byte, and what multiplies each where it is the byte's upper bits.
inline constexpr int kByteCodes = kQuantBit == 4 ? 2 : 1, kCodeFactor = kQuantBit == 4 ? 16 : 1;
/// A step: 32 bytes of a key.
inline constexpr int kStepWords = 8, kStepElements = 4 * kStepWords * kByteCodes, kSteps = kHeadDim / kStepElements;
/// A segment: neighbouring elements of a query that share a scale of the keys, and a unit of their digits.
inline constexpr int kSegmentElements = kQuantGroup < kStepElements ? kQuantGroup : kStepElements;
inline constexpr int kSegments = kHeadDim / kSegmentElements, kStepSegments = kStepElements / kSegmentElements;
inline constexpr int kSegmentWords = kStepWords / kStepSegments;
/// Elements of values that are summed together.
inline constexpr int kSpanElements = 32;
/// Keys whose weights share a unit: enough to make little of what a block costs, few enough for sums in 32 bits.
inline constexpr int kWeightKeys = 128;
/// Rows of a tile whose sums fit the registers, and how often these are passed through.
inline constexpr int kRowsTogether = kRows < 4 ? kRows : 4, kRowPasses = kRows / kRowsTogether;

static_assert(kQuantised && kHeadDim % kStepElements == 0 && kQuantGroup % kSpanElements == 0);
static_assert(kSegmentElements * kSegments == kHeadDim && kAhead >= 16);
static_assert(kChunkKeys % kWeightKeys == 0 && kWeightKeys % 16 == 0);

}  // namespace kvjit
