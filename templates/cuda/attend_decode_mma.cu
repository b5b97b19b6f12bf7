// attend for few query rows, by matrix products (docs/semantics.md, section 3). Reading keys and values, once, takes
// the time. Each warp of a block takes every fourth tile of keys, through a ring of its own in
// shared memory, so that warps don't wait for each other until they merge.
#include "cuda/attend/decode.h"
#include "cuda/attend/mma/decode_products.h"
#include "cuda/attend/mma/decode_ring.h"
#include "cuda/attend/mma/softmax.h"
#include "cuda/attend/partial.h"
#include "cuda/attend/work.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

inline constexpr LaunchShape kShape = mma_decode_shape(kFormat, kGroup, kMaxSharedBytes);

/// A warp's result, staged for the merge.
struct WarpSums {
    struct Row {
        float sums[mma_value_elements(kFormat)];
        float running[2];  // max and sum
        float padding[2];
    } rows[8 * kRowTiles];
};
static_assert(sizeof(WarpSums) == mma_merge_bytes(kFormat, kGroup));

union alignas(16) WarpShared {
    char ring[Ring::kStages * Stage::kBytes];
    WarpSums staged;
};

struct alignas(16) DecodeShared {
    WarpShared warps[kAttendWarps];
    char query[mma_query_bytes(kFormat)];
};
static_assert(sizeof(DecodeShared) == kShape.shared_bytes);

// ---- 2. Work split: cuda/attend/decode.h; a warp takes every fourth tile of the keys -------------------------------

// ---- 3. Load Q: cuda/attend/mma/decode_products.h ------------------------------------------------------------------

// ---- 4. Per key tile: scores, mask, online softmax, PV -------------------------------------------------------------

struct WarpState {
    ValueSums sums;
    RowStateOf<kRowTiles> rows;
    float headroom = kFirstHeadroom;  // of probabilities; see fit_headroom
    int used;                         // of a lane's rows: one where the block has 8 at most
};

using DecodeRows = TileRowsOf<kRowTiles>;

/// Turns scores of one tile of keys into weights of its values, and rescales the running sums, unless fit_headroom may
/// change by how much.
KVJIT_INLINE void softmax_tile(Weights& weights, Scores& scores, WarpState& state, const DecodeRows& rows,
                               ProductRule rule, i32 begin, bool whole) {
    modify_tile(scores, rows, rule, begin, whole, state.used);
    if constexpr (kMaskRank > 0) {
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) weights.seen[n] = seen_pair(scores, n, state.used);
    }
    exponentiate_tile(scores, state.rows, rule.factor, weights.rescale, state.headroom, state.used);
    if constexpr (!kScalesApart) rescale_sums(state.sums, weights.rescale);
#pragma unroll
    for (int step = 0; step < kKeySteps; ++step) pack_fragment(weights.probabilities[step], scores, step);
}

/// Lowers the headroom of probabilities, so that their products with the tile's scales are at most 2^15, which is
/// finite as float16. They are where scales are less than 2, as most caches' are. A scale of 2^16 or more may make a
/// product infinite.
KVJIT_INLINE void fit_headroom(Weights& weights, WarpState& state) {
    u32 large = 0;
    for (PairScales& each : weights.scales.of_keys) large |= each.large();
    if (ballot(large != 0) == 0) return;
    const float largest = fold_row(weights.scales.largest(), [](float a, float b) { return max_nan(a, b); });
    const i32 exponent = __builtin_bit_cast(i32, largest) >> 23, most = 127 + 15;  // of infinity and NaN, too
    const float headroom = kFirstHeadroom + 127 - (exponent < most ? exponent : most);
    if (headroom >= state.headroom) return;
    const float shrink = exp2(headroom - state.headroom);
    state.headroom = headroom;
#pragma unroll
    for (int h = 0; h < kRowTiles; ++h) {
        state.rows.sum[h] *= shrink;
        weights.rescale[h] *= shrink;
    }
#pragma unroll
    for (u32(&step)[4] : weights.probabilities) {
#pragma unroll
        for (u32& pair : step) pair = multiply_pairs(pair, pack_pair(shrink, shrink));
    }
}

KVJIT_INLINE DecodeRows rows_of_lane(const AttendWork& work) {
    DecodeRows rows;
#pragma unroll
    for (int h = 0; h < kRowTiles; ++h) {
        const i64 row = work.row_begin + lane_row() + 8 * h;
        rows.seen[h] = seen_by_row(work, row);
        rows.terms[h] = terms_of_row(work, row);
    }
    return rows;
}

/// Attends all tiles of the warp.
KVJIT_INLINE void attend_keys(WarpState& state, DecodeShared& shared, const AttendWork& work, ProductRule rule) {
    Ring ring = start_ring(work, keep_shared(shared.warps[warp_index()]).ring);
    QueryOperands query;
    load_query(query, shared.query, work);
    FirstSums first;
    make_first_sums(first, query, shared.query);
    const DecodeRows rows = rows_of_lane(work);
    const ShortRange low = seen_by_row(work, work.row_begin), high = seen_by_row(work, work.row_end - 1);
    const ShortRange seen_by_all = {high.begin, low.end};
#pragma unroll 1
    for (; ring.has_more(); ring.advance()) {
        const Stage stage = ring.stage();
        Weights weights;
        wait_keys(ring);
        if (ring.is_filled()) {
            Scores scores;
            score_keys(scores, query, first, shared.query, stage);
            softmax_tile(weights, scores, state, rows, rule, ring.begin,
                         seen_by_all.holds({ring.begin, ring.begin + kTileKeys}));
        }
        wait_values(ring);
        if (!ring.is_filled()) continue;
        if constexpr (kScalesApart) {
            load_value_scales(weights, stage);
            if constexpr (!kBfloat16) fit_headroom(weights, state);
            rescale_sums(state.sums, weights.rescale);
        }
#pragma unroll
        for (int step = 0; step < kKeySteps; ++step) add_values(state.sums, weights, stage, step);
    }
    wait_copies<0>();
}

// ---- 5. Merge, 6. Store --------------------------------------------------------------------------------------------

KVJIT_INLINE void store_floats(float* to, const u32 (&words)[1]) {
    store4(to, words);
}
KVJIT_INLINE void store_floats(float* to, const u32 (&words)[4]) {
    store16(to, words);
}

/// Stages the lane's sums for one packed row, that of column i of tile n.
KVJIT_INLINE void stage_row(float* to, const ValueSums& sums, int n, int i, float unit) {
    constexpr int kWords = kQuantised ? 4 : 1;  // that neighbour each other: see value_element
#pragma unroll
    for (int at = 0; at < 2 * kValueMatrices; at += kWords) {
        u32 words[kWords];
#pragma unroll
        for (int w = 0; w < kWords; ++w)
            words[w] = __builtin_bit_cast(u32, sums[(at + w) / 2].at(n, (at + w) % 2, i) * unit);
        store_floats(to + value_element(at / 2, at % 2), words);
    }
}

/// Stages the warp's sums and running states in shared memory.
KVJIT_INLINE void stage_sums(WarpSums& staged, const WarpState& state, float factor) {
    float units[kRowTiles];
#pragma unroll
    for (int h = 0; h < kRowTiles; ++h) {
        const FinishedState finished = finish_state(state.rows, factor, h, state.headroom);
        units[h] = finished.weight * kFragmentUnit;
        if (lane_pair() == 0)
            store_pair(staged.rows[lane_row() + 8 * h].running, {finished.running.max, finished.running.sum});
    }
    const ColumnFactors columns = factors_of_columns(units);
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n) {
        if (n >= state.used) break;
#pragma unroll
        for (int i = 0; i < 2; ++i)
            stage_row(staged.rows[8 * n + 2 * lane_pair() + i].sums, state.sums, n, i, columns.column[n][i]);
    }
}

/// The staged rows, in a part for each warp.
KVJIT_INLINE RowParts parts_of(const DecodeShared& shared) {
    const WarpSums::Row& first = shared.warps[0].staged.rows[0];
    return {kAttendWarps, first.sums, first.running, sizeof(WarpShared) / sizeof(float),
            sizeof(WarpSums::Row) / sizeof(float)};
}

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

/// Attends a tile of rows and a split of its keys. The block calls it together.
KVJIT_INLINE void attend_mma(const AttendWork& work) {
    DecodeShared& shared = shared_memory<DecodeShared>();
    const ProductRule rule = product_rule(work, kProductUnit);
    WarpState state;
    state.used = kRowTiles > 1 && work.row_end - work.row_begin > 8 ? 2 : 1;
#pragma unroll
    for (Fragment<kRowTiles>& sums : state.sums) sums.clear();
    attend_keys(state, shared, work, rule);
    warp_barrier();
    stage_sums(shared.warps[warp_index()].staged, state, rule.factor);
    barrier();
    finish_rows<kShape.rows, false>(work, parts_of(shared));
}

struct Mma {
    static constexpr LaunchShape kShape = kvjit::kShape;
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_mma(work); }
};

}  // namespace kvjit

KVJIT_ENTRY(kvjit::Mma::kShape.threads, kvjit::Mma::kShape.blocks_per_sm)
kvjit_attend_decode(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Mma>(args);
}
