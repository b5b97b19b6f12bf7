// attend for few query rows, by matrix products (docs/semantics.md, section 3). Reading keys and values, once, takes
// the time. Each warp of a block takes every fourth tile of 16 keys, by their positions, through a ring of its own in
// shared memory, so that warps don't wait for each other until they merge.
//
// A product may sum over elements in any order that both operands share: a lane loads 8 neighbouring elements of a key
// and uses them as columns 2t, 2t + 1, 2t + 8, 2t + 9 of two steps. The columns of the sums of values may be any
// elements, too: column n of matrix j is element 8n + j, so that a lane loads 8 neighbouring elements of a value.
#include "cuda/attend/decode.h"
#include "cuda/attend/mma/decode_ring.h"
#include "cuda/attend/mma/operands.h"
#include "cuda/attend/mma/softmax.h"
#include "cuda/attend/partial.h"
#include "cuda/attend/work.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

inline constexpr int kKeyParts = mma_key_elements(kFormat) / 32;      // of 32 elements: two steps of a product
inline constexpr int kValueParts = mma_value_elements(kFormat) / 64;  // of 64 elements: eight matrices
inline constexpr bool kQueryShared = mma_shares_query(kFormat);

/// A warp's result, staged for the merge.
struct WarpSums {
    static constexpr int kStride = mma_sums_stride(kFormat);
    float sums[kDecodeTileRows][kStride];
    Running running[kDecodeTileRows];
};
static_assert(sizeof(WarpSums) == mma_merge_bytes(kFormat));

union alignas(16) WarpShared {
    char ring[Ring::kStages * Stage::kBytes];
    WarpSums staged;
};

struct alignas(16) DecodeShared {
    WarpShared warps[kAttendWarps];
    char query[mma_query_bytes(kFormat)];
};
static_assert(sizeof(DecodeShared) == mma_decode_shape(kFormat, kMaxSharedBytes).shared_bytes);

// ---- 2. Work split: cuda/attend/decode.h; a warp takes every fourth tile of the keys -------------------------------

// ---- 3. Load Q -----------------------------------------------------------------------------------------------------

/// The queries as left operands: of all steps, or for long rows of the current part's two.
struct QueryOperands {
    u32 step[kQueryShared ? 2 : 2 * kKeyParts][4];
};

/// Loads the left operands of the two steps over elements 32*part..32*part+31; zeros for rows that don't exist.
KVJIT_INLINE void load_query_part(u32 (&first)[4], u32 (&second)[4], const AttendWork& work, int part) {
    const i32 element = 32 * part + kFragment * lane_pair();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const i64 row = work.row_begin + lane_row() + 8 * h;
        u32 pairs[4] = {0, 0, 0, 0};
        if (row < work.row_end && element < kHeadDim) load16(pairs, query_row(work, row) + element);
        if constexpr (kQuantBit == 4) interleave_pairs(pairs);
#pragma unroll
        for (int i = 0; i < 4; ++i) (i < 2 ? first : second)[i % 2 * 2 + h] = pairs[i] ^ query_sign(work);
    }
}

KVJIT_INLINE char* shared_step(char* query, int step) {
    return query + (step * kWarpSize + lane_index()) * 16;
}

/// Loads the queries into registers, or long ones into shared memory. The block calls it together.
KVJIT_INLINE void load_query(QueryOperands& query, char* shared, const AttendWork& work) {
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) {
        if constexpr (!kQueryShared) {
            load_query_part(query.step[2 * part], query.step[2 * part + 1], work, part);
        } else if (part % kAttendWarps == warp_index()) {
            load_query_part(query.step[0], query.step[1], work, part);
            store16(shared_step(shared, 2 * part), query.step[0]);
            store16(shared_step(shared, 2 * part + 1), query.step[1]);
        }
    }
    if constexpr (kQueryShared) barrier();
}

// ---- 4. Per key tile: scores, mask, online softmax, PV -------------------------------------------------------------

/// Products of the 16 rows with the 16 keys of a stage.
KVJIT_INLINE void score_keys(Fragment<2>& scores, QueryOperands& query, const char* shared, const Stage& stage) {
    scores.clear();
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) {
        const int step = kQueryShared ? 0 : 2 * part;
        if constexpr (kQueryShared) {
            load16(query.step[0], shared_step(const_cast<char*>(shared), 2 * part));
            load16(query.step[1], shared_step(const_cast<char*>(shared), 2 * part + 1));
        }
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const i32 row = 8 * n + lane_row();
            KeyPairs pairs;
            load_key_pairs(pairs, stage.keys() + row * Stage::kKeyStride,
                           stage.key_scales() + row * Stage::kKeyScaleStride, 32 * part + kFragment * lane_pair());
            mma_16x8x16<T1>(scores.c[n], query.step[step], {pairs.high[0], pairs.high[1]});
            mma_16x8x16<T1>(scores.c[n], query.step[step + 1], {pairs.high[2], pairs.high[3]});
            if constexpr (!kQuantised) continue;
            mma_16x8x16<T1>(scores.c[n], query.step[step], {pairs.low[0], pairs.low[1]});
            mma_16x8x16<T1>(scores.c[n], query.step[step + 1], {pairs.low[2], pairs.low[3]});
        }
    }
}

/// sums += probabilities * values of a stage. seen, with masks: seen_pair of the lane's keys.
KVJIT_INLINE void add_values(Fragment<8 * kValueParts>& sums, const u32 (&probabilities)[4], const Stage& stage,
                             const u32 (&seen)[2]) {
#pragma unroll
    for (int part = 0; part < kValueParts; ++part) {
        u32 pairs[2][8];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const i32 key = 8 * half + 2 * lane_pair();
            load_value_pairs<Stage::kValueStride, Stage::kValueScaleStride>(
                pairs[half], stage.values() + key * Stage::kValueStride,
                stage.value_scales() + key * Stage::kValueScaleStride, 64 * part + kFragment * lane_row());
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            if constexpr (kMaskRank > 0)
                mma_16x8x16<T1>(sums.c[8 * part + j], probabilities, {pairs[0][j] & seen[0], pairs[1][j] & seen[1]});
            else
                mma_16x8x16<T1>(sums.c[8 * part + j], probabilities, {pairs[0][j], pairs[1][j]});
        }
    }
}

struct WarpState {
    Fragment<8 * kValueParts> sums;
    RowState rows;
};

/// Turns scores of one tile of keys into packed probabilities, and rescales the running sums.
KVJIT_INLINE void softmax_tile(u32 (&probabilities)[4], u32 (&seen)[2], Fragment<2>& scores, WarpState& state,
                               const TileRows& rows, ProductRule rule, i32 begin, bool whole) {
    modify_tile(scores, rows, rule, begin, whole);
    if constexpr (kMaskRank > 0) {
        seen[0] = seen_pair(scores, 0);
        seen[1] = seen_pair(scores, 1);
    }
    float rescale[2];
    exponentiate_tile(scores, state.rows, rule.factor, rescale);
    scale_sums(state.sums, rescale);
    pack_fragment(probabilities, scores, 0);
}

KVJIT_INLINE TileRows rows_of_lane(const AttendWork& work) {
    const i64 row = work.row_begin + lane_row();
    return {{seen_by_row(work, row), seen_by_row(work, row + 8)},
            {terms_of_row(work, row), terms_of_row(work, row + 8)}};
}

/// Attends all tiles of the warp. The first turns, of negative tiles, only fill the ring.
KVJIT_INLINE void attend_keys(WarpState& state, DecodeShared& shared, const AttendWork& work, ProductRule rule) {
    Ring ring = start_ring(work, shared.warps[warp_index()].ring);
    QueryOperands query;
    load_query(query, shared.query, work);
    const TileRows rows = rows_of_lane(work);
    const ShortRange low = seen_by_row(work, work.row_begin), high = seen_by_row(work, work.row_end - 1);
    const ShortRange seen_by_all = {high.begin, low.end};
#pragma unroll 1
    for (i32 tile = -Ring::kStages; ring.tile_begin(tile) < work.keys.end; ++tile) {
        const i32 begin = static_cast<i32>(ring.tile_begin(tile));
        const Stage stage = ring.stage(tile);
        u32 probabilities[4], seen[2];
        wait_keys(ring, tile);
        if (tile >= 0) {
            Fragment<2> scores;
            score_keys(scores, query, shared.query, stage);
            softmax_tile(probabilities, seen, scores, state, rows, rule, begin,
                         seen_by_all.holds({begin, begin + kMmaTileKeys}));
        }
        wait_values(ring, tile);
        if (tile >= 0) add_values(state.sums, probabilities, stage, seen);
    }
    wait_copies<0>();
}

// ---- 5. Merge, 6. Store --------------------------------------------------------------------------------------------

/// Elements that a lane has of one row and part of the sums of values: neighbours, from 16 * lane_pair() on.
inline constexpr int kLaneElements = 16;

/// The lane's element e of a part, in its row h: column n of tile j is element 8n + j (see the top of this file).
KVJIT_INLINE float sum_of_element(const WarpState& state, int part, int h, int e) {
    return state.sums.at(8 * part + e % 8, h, e / 8);
}

/// Stages the warp's sums and running states in shared memory.
KVJIT_INLINE void stage_sums(WarpSums& staged, const WarpState& state, float factor) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const i32 row = lane_row() + 8 * h;
        const FinishedState finished = finish_state(state.rows, factor, h);
        const float unit = finished.weight * kFragmentUnit;
#pragma unroll
        for (int at = 0; at < kLaneElements * kValueParts; at += 4) {
            const int part = at / kLaneElements, e = at % kLaneElements;
            u32 words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                words[i] = __builtin_bit_cast(u32, sum_of_element(state, part, h, e + i) * unit);
            store16(staged.sums[row] + 64 * part + kLaneElements * lane_pair() + e, words);
        }
        if (lane_pair() == 0) staged.running[row] = finished.running;
    }
}

/// Merges the warps' parts of each row, in the order of warps, and writes the results.
KVJIT_INLINE void merge_warps(const DecodeShared& shared, const AttendWork& work) {
    for (i64 row = work.row_begin + warp_index(); row < work.row_end; row += kAttendWarps) {
        const i32 at = static_cast<i32>(row - work.row_begin);
        RowLanes acc;
        const Running merged = merge_parts(
            acc, kAttendWarps, [&](i64 w) { return shared.warps[w].staged.running[at]; },
            [&](i64 w) { return shared.warps[w].staged.sums[at]; });
        emit_row(work, row, acc, merged);
    }
}

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

/// Attends a tile of rows and a split of its keys. The block calls it together.
KVJIT_INLINE void attend_mma(const AttendWork& work) {
    DecodeShared& shared = shared_memory<DecodeShared>();
    const ProductRule rule = product_rule(work);
    WarpState state;
    state.sums.clear();
    attend_keys(state, shared, work, rule);
    warp_barrier();
    stage_sums(shared.warps[warp_index()].staged, state, rule.factor);
    barrier();
    merge_warps(shared, work);
}

struct Mma {
    static constexpr LaunchShape kShape = mma_decode_shape(kFormat, kMaxSharedBytes);
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_mma(work); }
};

}  // namespace kvjit

KVJIT_ENTRY(kvjit::Mma::kShape.threads, kvjit::Mma::kShape.blocks_per_sm)
kvjit_attend_decode(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Mma>(args);
}
