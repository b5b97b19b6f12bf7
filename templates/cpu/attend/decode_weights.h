// Weights of values, probabilities times scales, in fixed point, for products of bytes. In a block of keys each row and
// quantisation group has a unit of its own, a power of two, so that its largest weight is an integer of 24 bits,
// exactly, and the others are the nearest integers. Three digits of base 256, each in 0..255, are their bytes.
#pragma once

#include "cpu/attend/decode_digits.h"
#include "cpu/attend/scale_columns.h"

namespace kvjit {

struct WeightBlock {
    i64 begin;       // of the block in the chunk
    i64 first, end;  // its keys, counted from there; others of the same 16 have no weight
    alignas(64) float scales[kWeightKeys / 16][kScalesPerRow][16];  // times kWeightFactor; 0 where no row sees the key
    WeightDigits digits;
    float unit[kScalesPerRow][kRows][2];  // of the lowest digit and of the middle one
    bool floats[kRows];                   // rows with a weight that is not finite, or below 0

    KVJIT_INLINE i64 first_set() const { return first / 16; }
    KVJIT_INLINE i64 end_set() const { return (end + 15) / 16; }
};

/// Keeps weights from being subnormal: a probability is 0 or at least 2^-126, a scale of kvjit's at least 2^-17.
inline constexpr float kWeightFactor = 0x1p24f;
inline constexpr i32 kLeastExponent = -75;  // of a block's largest weight: smaller ones lose digits

/// The weights of 16 keys, times kWeightFactor, from their probabilities and scales. Of a key that is hidden from the
/// row alone the weight is +0 whatever the scale is: another one would send the row to its sums by floats.
KVJIT_INLINE vf<16> weights_of(const float* probabilities, const float* scales) {
    const vf<16> probability = load<16>(probabilities), weight = probability * load<16>(scales);
    if constexpr (kMaskRank == 0) return weight;
    return from_bits<16>(bits_of<16>(weight) & (bits_of<16>(probability) != kHiddenBits));
}

/// The bits of the largest weight that each row has in the group. Those of numbers that are not finite, or below 0,
/// are larger than others'.
KVJIT_INLINE void find_largest(u32 (&largest)[kRows], const WeightBlock& block, const float* probabilities, int group) {
    vec<u32, 16> lanes[kRows];
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) lanes[r] = vec<u32, 16>(0u);
#pragma clang loop unroll(disable)
    for (i64 set = block.first_set(); set < block.end_set(); ++set) {
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) {
            const vf<16> weights = weights_of(probabilities + r * kScoreStride + set * 16, block.scales[set][group]);
            lanes[r] = max_fast(__builtin_bit_cast(vec<u32, 16>, weights), lanes[r]);
        }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) largest[r] = largest_of(lanes[r]);
}

/// Writes the digits of the group's weights, and their units.
KVJIT_INLINE void weigh_group(WeightBlock& block, const float* probabilities, int group) {
    u32 largest[kRows];
    float factor[kRows];
    find_largest(largest, block, probabilities, group);
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) {
        const i32 shift = 23 - exponent_of(largest[r], kLeastExponent);
        const float unit = power_of_2(-shift) / (kWeightFactor * kCodeFactor);
        factor[r] = power_of_2(shift);
        block.unit[group][r][0] = unit;
        block.unit[group][r][1] = unit * 256;
        block.floats[r] |= largest[r] >= 0x7f800000;
    }
#pragma clang loop unroll(disable)
    for (i64 set = block.first_set(); set < block.end_set(); ++set) {
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) {
            const vf<16> weights = weights_of(probabilities + r * kScoreStride + set * 16, block.scales[set][group]);
            block.digits.write(set, group, r, deal_digits(round_to_integers(weights * factor[r])));
        }
    }
}

/// Which of the 16 keys from begin + 16 * set on some row of the tile sees.
KVJIT_INLINE vi<16> seen_keys(const WeightBlock& block, const float* probabilities, i64 set) {
    const vi<16> number = integers_from<16>(static_cast<i32>(16 * set));
    vi<16> seen = number >= static_cast<i32>(block.first) & number < static_cast<i32>(block.end);
    if constexpr (kMaskRank > 0) {
        vi<16> open(0);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r)
            open |= bits_of<16>(load<16>(probabilities + r * kScoreStride + 16 * set)) ^ kHiddenBits;
        seen &= open != 0;
    }
    return seen;
}

/// Loads the scales of 16 values. Of keys that no row sees they are not looked at.
KVJIT_INLINE void load_block_scales(WeightBlock& block, const float* probabilities, const ChunkRows& rows, i64 head,
                                    i64 set) {
    load_scales(block.scales[set], rows, block.begin + 16 * set, head);
    const vi<16> seen = seen_keys(block, probabilities, set);
#pragma clang loop unroll(disable)
    for (int group = 0; group < kScalesPerRow; ++group) {
        float* scales = block.scales[set][group];
        store<16>(scales, from_bits<16>(bits_of<16>(load<16>(scales) * kWeightFactor) & seen));
    }
}

/// Fills the block for the range's keys. probabilities: from the chunk's first key on.
KVJIT_NOINLINE void weigh_block(WeightBlock& block, const float* probabilities, const ChunkRows& rows,
                                const ValueRange& range) {
    const bool empty = range.end <= range.begin;  // it may begin past the chunk, where no rows are listed
    block.begin = range.begin / kWeightKeys * kWeightKeys;
    block.first = empty ? 0 : range.begin - block.begin;
    block.end = empty ? 0 : range.end - block.begin;
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) block.floats[r] = false;
#pragma clang loop unroll(disable)
    for (i64 set = block.first_set(); set < block.end_set(); ++set)
        load_block_scales(block, probabilities + block.begin, rows, range.head, set);
#pragma clang loop unroll(disable)
    for (int group = 0; group < kScalesPerRow; ++group) weigh_group(block, probabilities + block.begin, group);
    block.digits.clear_others(block.first_set(), block.end_set());
#pragma clang loop unroll(disable)
    for (int group = 0; group < kScalesPerRow; ++group)
#pragma clang loop unroll(disable)
        for (int r = 0; r < kRows; ++r)
            if (block.floats[r]) block.unit[group][r][0] = block.unit[group][r][1] = 0.0f;
}

/// sums += probabilities times values by floats, for one row of the tile whose probabilities these are.
KVJIT_INLINE void add_by_floats(float* sums, const float* probabilities, i64 row, const ChunkRows& rows,
                                const ValueRange& range) {
#pragma clang loop unroll(disable)
    for (i64 t = range.begin; t < range.end; ++t) {
        const RowAt value = value_row(rows, range, t, seen_by_tile(probabilities, t));
        const vf<16> probability(probabilities[row * kScoreStride + t]);
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += 16)
            store<16>(sums + d, fma<16>(probability, load_cache<16>(value.codes, value.scales, d), load<16>(sums + d)));
    }
}

}  // namespace kvjit
