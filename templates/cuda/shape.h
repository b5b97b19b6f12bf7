// How much of a call one block of a CUDA kernel takes, its threads and its shared memory. The host calls these
// functions with a spec's values, the templates call them with their constants.
#pragma once

#include "common/abi.h"

namespace kvjit {

using abi::i64;

inline constexpr int kWarpSize = 32;
inline constexpr int kTokenWarps = 8;       // warps of a block of store, load, merge, check and relayout
inline constexpr int kAttendWarps = 4;      // warps of a block of attention, but by warpgroups
inline constexpr int kDecodeTileRows = 16;  // the most packed rows (token, query head of a kv head) of a decode block
inline constexpr int kSplitUnit = 64;       // keys of a split are a multiple of this

/// A cache's format, as far as blocks of attention depend on it.
struct CacheFormat {
    int head_dim;
    int t2_bits;      // 32, 16, 8, 4
    int scale_bytes;  // 0: not quantised
    int quant_group;
};

/// The most shared memory of a block if a multiprocessor is to hold two blocks. A multiprocessor has 1 KiB more than
/// one block may have, and the driver takes 1 KiB for each block.
constexpr int half_of_shared(int max_shared_bytes) {
    return (max_shared_bytes + 1024) / 2 - 1024;
}

/// A program's blocks, as plans launch them.
struct LaunchShape {
    int rows;  // packed rows of a block's tile; of store, load and merge, one for each warp
    int threads;
    int blocks_per_sm;  // the least number of blocks that must fit into a multiprocessor's registers
    int shared_bytes;
};

/// Of store and load. A lane's one piece of a row leaves registers for 48 warps, which is all that some GPUs run at
/// once.
constexpr LaunchShape row_shape(int head_dim) {
    return {kTokenWarps, kTokenWarps * kWarpSize, head_dim <= 4 * kWarpSize ? 6 : 4, 0};
}

/// Shapes of merge and relayout, and of check, whose blocks have a multiprocessor each.
inline constexpr LaunchShape kTokenShape = {kTokenWarps, kTokenWarps* kWarpSize, 4, 0};
inline constexpr LaunchShape kCheckShape = {kTokenWarps, kTokenWarps* kWarpSize, 1, 0};

constexpr int row_bytes(const CacheFormat& format) {
    return format.head_dim * format.t2_bits / 8;
}
constexpr int scale_row_bytes(const CacheFormat& format) {
    return format.head_dim / format.quant_group * format.scale_bytes;
}

/// The widest access that rows of `bytes` bytes allow, 16 at most: addresses of rows are multiples of it.
constexpr int widest_access(int bytes) {
    return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

// ---- Attention by dot products: cuda/attend/dot/attend.h ------------------------------------------------------------

/// Stride of rows in shared memory: an odd number of 16 bytes, so that 8 lanes with a row each use all banks once.
constexpr int dot_stride(int bytes) {
    return bytes == 0 ? 0 : ((bytes + 15) / 16 | 1) * 16;
}

/// Rows of one warp: the warps of a decode block share its tile of rows, those of a prefill block split it.
constexpr int dot_warp_rows(bool decode, const CacheFormat& format) {
    return decode || format.head_dim <= 128 ? 16 : 8;
}

constexpr int dot_tile_rows(bool decode, const CacheFormat& format) {
    return dot_warp_rows(decode, format) * (decode ? 1 : kAttendWarps);
}

/// Bytes of the tiles of `keys` keys and values, with their scales, of all teams of a block. A team has tiles of its
/// own: each warp of a decode block, all warps of a prefill block together.
constexpr int dot_tiles_bytes(bool decode, const CacheFormat& format, int keys) {
    const int row = dot_stride(row_bytes(format)) + dot_stride(scale_row_bytes(format));
    return (decode ? kAttendWarps : 1) * 2 * keys * row;
}

/// Keys of a tile: 32, one for each lane; fewer where rows are long, so that lanes share a key.
constexpr int dot_tile_keys(bool decode, const CacheFormat& format) {
    const int limit = (decode ? 72 : 48) * 1024;
    for (int keys = kWarpSize; keys > 8; keys /= 2) {
        if (dot_tiles_bytes(decode, format, keys) <= limit) return keys;
    }
    return 8;
}

/// Floats from row to row of queries, and of sums of values with their max and sum, which take the queries' place.
constexpr int dot_row_stride(const CacheFormat& format) {
    return format.head_dim + 4;
}
/// Bytes of the results of a decode block's warps, which have the same rows.
constexpr int dot_merge_bytes(const CacheFormat& format) {
    return kAttendWarps * dot_tile_rows(true, format) * dot_row_stride(format) * 4;
}

/// Query rows and probabilities as float32, and the tiles, which decode's results overwrite.
constexpr int dot_shared_bytes(bool decode, const CacheFormat& format) {
    const int keys = dot_tile_keys(decode, format);
    const int query = dot_tile_rows(decode, format) * dot_row_stride(format) * 4;
    const int probabilities = kAttendWarps * dot_warp_rows(decode, format) * keys * 4;
    const int tiles = dot_tiles_bytes(decode, format, keys), merge = decode ? dot_merge_bytes(format) : 0;
    return query + probabilities + (tiles > merge ? tiles : merge);
}

constexpr LaunchShape dot_shape(bool decode, const CacheFormat& format) {
    return {dot_tile_rows(decode, format), kAttendWarps * kWarpSize, 2, dot_shared_bytes(decode, format)};
}

// ---- Attention by tensor cores: cuda/attend_decode_mma.cu, cuda/attend_prefill_mma.cu -------------------------------

inline constexpr int kProductKeys = 16;  // the depth of a matrix product
inline constexpr int kMaxStages = 4;

constexpr int round_up(int n, int unit) {
    return (n + unit - 1) / unit * unit;
}

/// Packed rows of a decode block: 16, so that a few new tokens read keys once; of quantised caches, whose decode
/// instructions bound, 8, which are less work, where these hold the heads of one new token.
constexpr int mma_decode_rows(const CacheFormat& format, int group) {
    return format.scale_bytes != 0 && group <= 8 ? 8 : kDecodeTileRows;
}

/// Whether decode multiplies codes, and applies scales elsewhere, as each is one for a multiple of 32 elements.
constexpr bool mma_scales_apart(const CacheFormat& format) {
    return format.scale_bytes != 0 && format.quant_group % 32 == 0;
}

/// Elements of decode's rows in shared memory, with zeros past head_dim: a lane takes 8 elements at a time, of each 32
/// of a key and of each 64 of a quantised value; where scales are apart 4 of each 32 of a value, unless each is one for
/// a multiple of 64. Other values are taken by matrices of 16 elements.
constexpr int mma_key_elements(const CacheFormat& format) {
    return round_up(format.head_dim, 32);
}
constexpr int mma_value_elements(const CacheFormat& format) {
    return round_up(format.head_dim, format.scale_bytes == 0 ? 16 : mma_scales_apart(format) ? 32 : 64);
}

/// Strides of rows, such that lanes which load together touch each bank once. For keys, 4 lanes load 4 * 8 elements of
/// one row, the next 4 lanes those of the next row; for values, lanes load neighbouring elements of every other row, or
/// 16 bytes of 8 rows.
constexpr int mma_key_stride(const CacheFormat& format) {
    const int span = 4 * format.t2_bits;
    return round_up(mma_key_elements(format) * format.t2_bits / 8 - span, 2 * span) + span;
}
constexpr int mma_value_stride(const CacheFormat& format) {
    return dot_stride(mma_value_elements(format) * format.t2_bits / 8);
}
/// Where a row has one scale, those of neighbouring keys are neighbours, so that a lane loads two at once.
constexpr int mma_scale_stride(const CacheFormat& format, int elements) {
    if (mma_scales_apart(format) && format.quant_group == format.head_dim) return format.scale_bytes;
    return dot_stride((elements + format.quant_group - 1) / format.quant_group * format.scale_bytes);
}

/// Bytes of a key and its value in shared memory, with their scales.
constexpr int mma_key_bytes(const CacheFormat& format) {
    return mma_key_stride(format) + mma_scale_stride(format, mma_key_elements(format)) + mma_value_stride(format) +
           mma_scale_stride(format, mma_value_elements(format));
}

/// A warp's result, staged for the merge: rows of sums of values, each with its max and sum.
constexpr int mma_sums_stride(const CacheFormat& format) {
    return mma_value_elements(format) + 4;
}
constexpr int mma_merge_bytes(const CacheFormat& format, int group) {
    return mma_decode_rows(format, group) * mma_sums_stride(format) * 4;
}

/// Whether decode's queries lie in shared memory, as long rows leave no registers for them.
constexpr bool mma_shares_query(const CacheFormat& format) {
    return format.head_dim > 128;
}
constexpr int mma_query_bytes(const CacheFormat& format) {
    return mma_shares_query(format) ? kDecodeTileRows * mma_key_elements(format) * 2 : 16;
}

/// Keys of a warp for which there is room if a multiprocessor is to hold two blocks.
constexpr int mma_ring_keys(const CacheFormat& format, int max_shared_bytes) {
    return (half_of_shared(max_shared_bytes) - mma_query_bytes(format)) / (kAttendWarps * mma_key_bytes(format));
}
/// Keys of a decode warp's tile, a stage of its ring: two products' where the cache is quantised, as instructions bound
/// such tiles, and where that leaves two stages.
constexpr int mma_tile_keys(const CacheFormat& format, int max_shared_bytes) {
    const bool two = format.scale_bytes != 0 && mma_ring_keys(format, max_shared_bytes) >= 4 * kProductKeys;
    return two ? 2 * kProductKeys : kProductKeys;
}
constexpr int mma_stages(const CacheFormat& format, int max_shared_bytes) {
    const int stages = mma_ring_keys(format, max_shared_bytes) / mma_tile_keys(format, max_shared_bytes);
    return stages < 1 ? 1 : stages < kMaxStages ? stages : kMaxStages;
}

constexpr int mma_warp_bytes(const CacheFormat& format, int group, int max_shared_bytes) {
    const int tile = mma_tile_keys(format, max_shared_bytes) * mma_key_bytes(format);
    const int ring = mma_stages(format, max_shared_bytes) * tile;
    return ring > mma_merge_bytes(format, group) ? ring : mma_merge_bytes(format, group);
}

constexpr LaunchShape mma_decode_shape(const CacheFormat& format, int group, int max_shared_bytes) {
    return {mma_decode_rows(format, group), kAttendWarps * kWarpSize, 2,
            mma_query_bytes(format) + kAttendWarps * mma_warp_bytes(format, group, max_shared_bytes)};
}

/// Prefill: number of matrices of 16 rows whose scores a warp computes. Values that a warp loads are multiplied twice
/// at least: with probabilities of two matrices of its own, where it has registers for their sums, else with its
/// team's.
constexpr int mma_row_tiles(const CacheFormat& format) {
    return format.head_dim <= 128 ? 2 : 1;
}
/// Warps of a team, which sum values for all of its rows, each a part of the elements, two tiles of 8 at a time: of
/// long rows all warps of the block, or two where four would have parts that differ.
constexpr int mma_team_warps(const CacheFormat& format) {
    return format.head_dim <= 128 ? 1 : round_up(format.head_dim, 32) % 64 == 0 ? kAttendWarps : 2;
}
constexpr int mma_team_matrices(const CacheFormat& format) {
    return mma_team_warps(format) * mma_row_tiles(format);
}
constexpr int mma_prefill_rows(const CacheFormat& format) {
    return kAttendWarps * 16 * mma_row_tiles(format);
}

/// Stride of rows of queries, keys and values of 16 bits, with zeros up to a multiple of 16 elements. Padding puts the
/// 8 rows of a matrix into different banks, as swizzling would, and keeps offsets in a row constant, which takes no
/// registers.
constexpr int mma_row_stride(const CacheFormat& format) {
    return dot_stride(round_up(format.head_dim, 16) * 2);
}

/// Bytes of a tile of quantised keys or values, with scales, before they are dequantised.
constexpr int mma_raw_bytes(const CacheFormat& format, int keys) {
    return format.scale_bytes == 0 ? 2 * 16
                                   : keys * (round_up(row_bytes(format), 16) + round_up(scale_row_bytes(format), 16));
}

/// Bytes of the residuals of quantised keys: what rounding to 16 bits takes from them.
constexpr int mma_residual_bytes(const CacheFormat& format, int keys) {
    return (format.scale_bytes == 0 ? 1 : keys) * mma_row_stride(format);
}

/// Bytes for a key of a tile: addresses of its key, its value and their scales, for this tile and the next, and an
/// entry of the table.
constexpr int mma_address_bytes(const CacheFormat& format) {
    return 2 * (format.scale_bytes == 0 ? 2 : 4) * 8 + 8;
}

/// Bytes of BlockContext, with a second table where scales have one, and of its arrays per warp and per row.
constexpr int context_bytes(const CacheFormat& format, int warps, int rows) {
    return 272 + (format.scale_bytes == 0 ? 0 : 16) + warps * 16 + rows * 4;
}

/// Bytes of what warps of a team exchange: probabilities of 16 rows and `keys` keys each, with a factor for each row
/// and a mark for each pair of keys, of masks.
constexpr int mma_weights_bytes(const CacheFormat& format, int keys) {
    return mma_team_warps(format) == 1 ? 3 * 16 : kAttendWarps * (16 * keys * 2 + 16 * 4 + keys / 8 * 4 * 4);
}

/// Floats of a row of sums that is staged for the output, and from row to row, with max, sum and unit between.
constexpr int mma_output_elements(const CacheFormat& format) {
    return round_up(format.head_dim, 32);
}
constexpr int mma_output_stride(const CacheFormat& format) {
    return mma_output_elements(format) + 8;
}

constexpr int mma_prefill_bytes(const CacheFormat& format, int keys) {
    const int tile = mma_prefill_rows(format) * mma_row_stride(format) +
                     keys * (2 * mma_row_stride(format) + mma_address_bytes(format)) +
                     mma_residual_bytes(format, keys) + 2 * mma_raw_bytes(format, keys) +
                     mma_prefill_rows(format) * 16 + mma_weights_bytes(format, keys);
    const int output = mma_prefill_rows(format) * mma_output_stride(format) * 4;
    return context_bytes(format, kAttendWarps, mma_prefill_rows(format)) + (tile > output ? tile : output);
}

/// Keys of prefill's tile: as many as leave room for a second block on the multiprocessor, if one fits at all.
constexpr int mma_prefill_keys(const CacheFormat& format, int max_shared_bytes) {
    const int room = half_of_shared(max_shared_bytes);
    const int limit = mma_prefill_bytes(format, 32) <= room ? room : max_shared_bytes;
    if (mma_prefill_bytes(format, 64) <= limit) return 64;
    return mma_prefill_bytes(format, 32) <= limit ? 32 : 16;
}

constexpr LaunchShape mma_prefill_shape(const CacheFormat& format, int max_shared_bytes) {
    return {mma_prefill_rows(format), kAttendWarps * kWarpSize, 2,
            mma_prefill_bytes(format, mma_prefill_keys(format, max_shared_bytes))};
}

// ---- Prefill by warpgroups: cuda/attend_prefill_wgmma.cu ------------------------------------------------------------

inline constexpr int kGroupWarps = 4;
inline constexpr int kWarpgroups = 2;                     // of a block; each has 64 rows
inline constexpr int kWarpgroupSharedBytes = 227 * 1024;  // that a block may have where there are warpgroups
inline constexpr int kWarpgroupRows = kWarpgroups * kGroupWarps * 16;

/// Keys of a tile: twice as many of rows of 128 elements, whose sums leave registers for the scores. So do those of 64,
/// but there two blocks of half the registers are faster, since each works while the other waits.
constexpr int wgmma_prefill_keys(const CacheFormat& format) {
    return format.head_dim == 128 ? 128 : 64;
}
constexpr int wgmma_prefill_blocks(const CacheFormat& format) {
    return format.head_dim == 64 ? 2 : 1;
}
/// Queries, two tiles of keys and two of values; terms of rows. Twice 1024 bytes, to which the first is aligned and all
/// are rounded up; and BlockContext.
constexpr int wgmma_prefill_bytes(const CacheFormat& format) {
    const int rows = kWarpgroupRows, keys = wgmma_prefill_keys(format), row = 2 * format.head_dim;
    const int tiles = (rows + 4 * keys) * row + rows * 16;
    const int output = rows * mma_output_stride(format) * 4;
    return (tiles > output ? tiles : output) + 2 * 1024 + context_bytes(format, kWarpgroups * kGroupWarps, rows);
}
constexpr LaunchShape wgmma_prefill_shape(const CacheFormat& format) {
    return {kWarpgroupRows, kWarpgroups * kGroupWarps * kWarpSize, wgmma_prefill_blocks(format),
            wgmma_prefill_bytes(format)};
}

// ---- Grids ----------------------------------------------------------------------------------------------------------

/// Tiles of `rows` rows that `tokens` new tokens have in one kv head.
constexpr int decode_tiles(int group, int tokens, int rows) {
    return (group * tokens + rows - 1) / rows;
}

/// Tiles in prefill's grid for up to `tokens` new tokens in `sequences` sequences. Sequence b's tiles begin at number
/// floor(seqstarts[b] * group / rows) + b, which leaves room for all tiles of each sequence.
constexpr i64 prefill_tiles(i64 tokens, i64 sequences, int group, int rows) {
    return tokens * group / rows + sequences;
}

}  // namespace kvjit
