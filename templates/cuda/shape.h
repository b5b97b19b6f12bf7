// How much of a call one block of a CUDA kernel takes, with how many threads and how much shared memory. The host calls
// these functions with a spec's values and the templates with their constants, so that the two can't drift apart.
#pragma once

#include "common/abi.h"

namespace kvjit {

using abi::i64;

inline constexpr int kWarpSize = 32;
inline constexpr int kTokenWarps = 8;       // warps of a block of store, load and merge
inline constexpr int kAttendWarps = 4;      // of a block of attention
inline constexpr int kDecodeTileRows = 16;  // packed rows (token, query head of a kv head) that a decode block takes
inline constexpr int kSplitUnit = 64;       // keys of a split are a multiple of this

/// What of a spec shapes attention's use of a block.
struct CacheFormat {
    int head_dim;
    int t2_bits;      // 32, 16, 8, 4
    int scale_bytes;  // 0: not quantised
    int quant_group;
};

/// What each of two blocks may have, so that a multiprocessor holds both. The driver takes 1 KiB of its own for each
/// block; the multiprocessor has that 1 KiB more than one block may have.
constexpr int half_of_shared(int max_shared_bytes) {
    return (max_shared_bytes + 1024) / 2 - 1024;
}

/// What a plan must know of a program's blocks.
struct LaunchShape {
    int rows;  // packed rows of a block's tile; of store, load and merge, one for each warp
    int threads;
    int blocks_per_sm;  // at least so many must fit into a multiprocessor's registers
    int shared_bytes;
};

/// Store, load and merge; and check, whose blocks each take a multiprocessor.
inline constexpr LaunchShape kTokenShape = {kTokenWarps, kTokenWarps* kWarpSize, 4, 0};
inline constexpr LaunchShape kCheckShape = {kTokenWarps, kTokenWarps* kWarpSize, 1, 0};

/// Bytes of a cache row and of its scales.
constexpr int row_bytes(const CacheFormat& format) {
    return format.head_dim * format.t2_bits / 8;
}
constexpr int scale_row_bytes(const CacheFormat& format) {
    return format.head_dim / format.quant_group * format.scale_bytes;
}

/// The widest access that rows of `bytes` bytes allow: addresses of rows are multiples of it, and 16 at most.
constexpr int widest_access(int bytes) {
    return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

// ---- Attention by dot products: cuda/attend/dot/tiles.h ------------------------------------------------------------

/// From row to row in shared memory: an odd number of 16 bytes, so that 8 lanes with a row each use all banks once.
constexpr int dot_stride(int bytes) {
    return bytes == 0 ? 0 : ((bytes + 15) / 16 | 1) * 16;
}

/// Rows of one warp: all warps of a decode block share its tile, those of a prefill block split it.
constexpr int dot_warp_rows(bool decode, const CacheFormat& format) {
    return decode || format.head_dim <= 128 ? 16 : 8;
}

constexpr int dot_tile_rows(bool decode, const CacheFormat& format) {
    return dot_warp_rows(decode, format) * (decode ? 1 : kAttendWarps);
}

/// Bytes of `keys` keys and as many values, with their scales, of each of the teams that have tiles of their own: the
/// warps of a decode block; a prefill block is one team.
constexpr int dot_tiles_bytes(bool decode, const CacheFormat& format, int keys) {
    const int row = dot_stride(row_bytes(format)) + dot_stride(scale_row_bytes(format));
    return (decode ? kAttendWarps : 1) * 2 * keys * row;
}

/// Keys of a tile: 32, one for each lane, unless rows are long; then lanes share a key.
constexpr int dot_tile_keys(bool decode, const CacheFormat& format) {
    const int limit = (decode ? 72 : 48) * 1024;
    for (int keys = kWarpSize; keys > 8; keys /= 2) {
        if (dot_tiles_bytes(decode, format, keys) <= limit) return keys;
    }
    return 8;
}

/// Rows that a decode block's warps merge at a time, and what they exchange for it: acc, max and sum of each warp.
inline constexpr int kDotMergeRows = 4;
constexpr int dot_merge_bytes(const CacheFormat& format) {
    return kAttendWarps * kDotMergeRows * (format.head_dim + 2) * 4;
}

/// Query rows and probabilities as float32, then the tiles, whose place the merge takes in the end.
constexpr int dot_shared_bytes(bool decode, const CacheFormat& format) {
    const int keys = dot_tile_keys(decode, format);
    const int query = dot_tile_rows(decode, format) * format.head_dim * 4;
    const int probabilities = kAttendWarps * dot_warp_rows(decode, format) * keys * 4;
    const int tiles = dot_tiles_bytes(decode, format, keys);
    const int merge = decode ? (dot_merge_bytes(format) + 15) / 16 * 16 : 0;
    return query + probabilities + (tiles > merge ? tiles : merge);
}

constexpr LaunchShape dot_shape(bool decode, const CacheFormat& format) {
    return {dot_tile_rows(decode, format), kAttendWarps * kWarpSize, 2, dot_shared_bytes(decode, format)};
}

// ---- Attention by tensor cores: cuda/attend/mma/decode.h, cuda/attend/mma/prefill.h --------------------------------

inline constexpr int kMmaTileKeys = 16;  // keys that a warp of a decode block takes at a time: one matrix product deep
inline constexpr int kMaxStages = 4;

constexpr int round_up(int n, int unit) {
    return (n + unit - 1) / unit * unit;
}

/// Elements of a decode's rows in shared memory, with zeros past head_dim: each lane takes 8 of a key's 32, or of a
/// value's 64, at a time.
constexpr int mma_key_elements(const CacheFormat& format) {
    return round_up(format.head_dim, 32);
}
constexpr int mma_value_elements(const CacheFormat& format) {
    return round_up(format.head_dim, 64);
}

/// From row to row: so that lanes which load together touch each bank once. A key's 4 lanes take 4 * 8 elements in a
/// row, and their neighbours the next row's; of values, lanes take neighbouring elements of every other row.
constexpr int mma_key_stride(const CacheFormat& format) {
    const int span = 4 * format.t2_bits;
    return round_up(mma_key_elements(format) * format.t2_bits / 8 - span, 2 * span) + span;
}
constexpr int mma_value_stride(const CacheFormat& format) {
    return dot_stride(mma_value_elements(format) * format.t2_bits / 8);
}
constexpr int mma_scale_stride(const CacheFormat& format, int elements) {
    return dot_stride((elements + format.quant_group - 1) / format.quant_group * format.scale_bytes);
}

/// A warp's tile of keys, their scales, its tile of values, their scales.
constexpr int mma_stage_bytes(const CacheFormat& format) {
    return kMmaTileKeys * (mma_key_stride(format) + mma_scale_stride(format, mma_key_elements(format)) +
                           mma_value_stride(format) + mma_scale_stride(format, mma_value_elements(format)));
}

/// What a warp stages for the merge: 16 rows of sums, and for each row max and sum.
constexpr int mma_sums_stride(const CacheFormat& format) {
    return mma_value_elements(format) + 4;
}
constexpr int mma_merge_bytes(const CacheFormat& format) {
    return kDecodeTileRows * (mma_sums_stride(format) + 2) * 4;
}

/// Whether a decode's query lies in shared memory: long rows leave no registers for it.
constexpr bool mma_shares_query(const CacheFormat& format) {
    return format.head_dim > 128;
}
constexpr int mma_query_bytes(const CacheFormat& format) {
    return mma_shares_query(format) ? kDecodeTileRows * mma_key_elements(format) * 2 : 16;
}

/// Tiles that a warp has under way: as many as let a multiprocessor hold two blocks.
constexpr int mma_stages(const CacheFormat& format, int max_shared_bytes) {
    const int stages =
        (half_of_shared(max_shared_bytes) - mma_query_bytes(format)) / (kAttendWarps * mma_stage_bytes(format));
    return stages < 1 ? 1 : stages < kMaxStages ? stages : kMaxStages;
}

constexpr int mma_warp_bytes(const CacheFormat& format, int max_shared_bytes) {
    const int ring = mma_stages(format, max_shared_bytes) * mma_stage_bytes(format);
    return ring > mma_merge_bytes(format) ? ring : mma_merge_bytes(format);
}

constexpr LaunchShape mma_decode_shape(const CacheFormat& format, int max_shared_bytes) {
    return {kDecodeTileRows, kAttendWarps * kWarpSize, 2,
            mma_query_bytes(format) + kAttendWarps * mma_warp_bytes(format, max_shared_bytes)};
}

/// Prefill: matrices of 16 rows that a warp has.
constexpr int mma_row_tiles(const CacheFormat& format) {
    return format.head_dim <= 128 ? 2 : 1;
}
constexpr int mma_prefill_rows(const CacheFormat& format) {
    return kAttendWarps * 16 * mma_row_tiles(format);
}

/// Bytes from row to row of queries, keys and values as float16, with zeros up to a multiple of 16 elements. Padded,
/// the 8 rows of a matrix lie in different banks as they would swizzled; and a row's pieces have constant distances,
/// which need no registers.
constexpr int mma_row_stride(const CacheFormat& format) {
    return dot_stride(round_up(format.head_dim, 16) * 2);
}

/// Bytes of a tile of quantised keys or values, with scales, on their way to float16.
constexpr int mma_raw_bytes(const CacheFormat& format, int keys) {
    return format.scale_bytes == 0 ? 2 * 16
                                   : keys * (round_up(row_bytes(format), 16) + round_up(scale_row_bytes(format), 16));
}

/// Bytes of what rounding to float16 takes from quantised keys.
constexpr int mma_residual_bytes(const CacheFormat& format, int keys) {
    return (format.scale_bytes == 0 ? 1 : keys) * mma_row_stride(format);
}

/// Addresses of a key's row, its value's, and the scales of both, for the tile at hand and the next, and an entry of
/// the table.
constexpr int mma_address_bytes(const CacheFormat& format) {
    return 2 * (format.scale_bytes == 0 ? 2 : 4) * 8 + 8;
}

/// The block's context (BlockContext), with a second table where scales have one, and each row's part of it.
constexpr int mma_context_bytes(const CacheFormat& format) {
    return 240 + (format.scale_bytes == 0 ? 0 : 16) + kAttendWarps * 16 + mma_prefill_rows(format) * 4;
}

/// Floats from row to row of the sums on their way to the output.
constexpr int mma_output_stride(const CacheFormat& format) {
    return round_up(format.head_dim, 32) + 8;
}

constexpr int mma_prefill_bytes(const CacheFormat& format, int keys) {
    const int tile = mma_prefill_rows(format) * mma_row_stride(format) +
                     keys * (2 * mma_row_stride(format) + mma_address_bytes(format)) +
                     mma_residual_bytes(format, keys) + 2 * mma_raw_bytes(format, keys) + mma_prefill_rows(format) * 16;
    const int output = mma_prefill_rows(format) * (mma_output_stride(format) + 2) * 4;
    return mma_context_bytes(format) + (tile > output ? tile : output);
}

/// Keys of a prefill's tile: many, unless that keeps a second block off the multiprocessor.
constexpr int mma_prefill_keys(const CacheFormat& format, int max_shared_bytes) {
    const int half = half_of_shared(max_shared_bytes);
    const int limit = mma_prefill_bytes(format, 32) <= half ? half : max_shared_bytes;
    if (format.head_dim <= 128 && mma_prefill_bytes(format, 64) <= limit) return 64;
    return mma_prefill_bytes(format, 32) <= limit ? 32 : 16;
}

constexpr LaunchShape mma_prefill_shape(const CacheFormat& format, int max_shared_bytes) {
    return {mma_prefill_rows(format), kAttendWarps * kWarpSize, 2,
            mma_prefill_bytes(format, mma_prefill_keys(format, max_shared_bytes))};
}

// ---- Grids ---------------------------------------------------------------------------------------------------------

/// Tiles of the rows that `tokens` new tokens have with one kv head, `rows` rows a tile.
constexpr int decode_tiles(int group, int tokens, int rows) {
    return (group * tokens + rows - 1) / rows;
}

/// Tiles that a prefill's grid has, for S new tokens at most in B sequences: sequence b's begin at the one numbered
/// floor(seqstarts[b] * group / rows) + b, which leaves each as many as it needs.
constexpr i64 prefill_tiles(i64 tokens, i64 sequences, int group, int rows) {
    return tokens * group / rows + sequences;
}

}  // namespace kvjit
