// attend for many query rows, by matrix products (docs/semantics.md, section 3). Arithmetic takes the time. The warps
// of a block split its rows and pass over the same tiles of keys; while they multiply, the next tile of keys or values
// is being copied.
#include "cuda/attend/mma/operands.h"
#include "cuda/attend/mma/output_rows.h"
#include "cuda/attend/mma/prefill_tiles.h"
#include "cuda/attend/mma/softmax.h"
#include "cuda/attend/partial.h"
#include "cuda/attend/prefill.h"
#include "cuda/attend/work.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

inline constexpr LaunchShape kShape = mma_prefill_shape(kFormat, kMaxSharedBytes);
inline constexpr int kSteps = round_up(kHeadDim, 16) / 16;      // of products that sum over elements
inline constexpr int kScoreTiles = kBlockKeys / 8;              // of 8 keys
inline constexpr int kValueTiles = round_up(kHeadDim, 16) / 8;  // of 8 elements
inline constexpr int kSumTiles = round_up(kValueTiles, 2 * kTeamWarps) / kTeamWarps;  // of these, a warp's

/// Steps whose queries a warp holds in registers for all tiles of keys; it loads the others' for each tile. kRegisters
/// are for queries, sums and scores; masks of two matrices' rows take the rest.
inline constexpr int kRegisters = kMaskRank > 0 && kRowTiles > 1 ? 128 : 184;
inline constexpr int kRoom = (kRegisters - 4 * (kTeamMatrices * kSumTiles + kRowTiles * kScoreTiles)) / (4 * kRowTiles);
inline constexpr int kHeldSteps = kRoom < 0 ? 0 : kRoom < kSteps ? kRoom : kSteps;

using OutputRows = OutputRowsOf<kBlockRows>;

struct alignas(16) PrefillShared {
    BlockContext context;
    union {
        PrefillTiles tiles;
        OutputRows output;
    };
};

static_assert(sizeof(PrefillShared) <= kShape.shared_bytes);

struct QueryMatrices {
    u32 a[kHeldSteps < kSteps ? kHeldSteps + 1 : kSteps][kRowTiles][4];
};

/// A warp's part of its team's sums: all rows, and kSumTiles tiles of elements.
using Sums = Fragment<kSumTiles>[kTeamMatrices];

struct PrefillState {
    Sums sums;
    RowState rows[kRowTiles];  // that the warp scores
};

// ---- 2. Work split: cuda/attend/prefill.h; teams of warps split the rows, the warps of a team scores by rows, and ---
// ---- sums of values by elements ------------------------------------------------------------------------------------

// ---- 3. Load Q -----------------------------------------------------------------------------------------------------

/// The address that the lane gives load_matrices for the warp's first matrix of queries.
KVJIT_INLINE const char* query_of_lane(const PrefillTiles& tiles) {
    const i32 thread = opaque(thread_index()), lane = thread % kWarpSize;
    return tiles.query[thread / kWarpSize * kRowTiles * 16 + lane % 16] + lane / 16 * 16;
}

KVJIT_INLINE void load_step(u32 (&a)[kRowTiles][4], const char* query, int step) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) load_matrices(a[m], query + 16 * m * kOperandStride + 32 * step);
}

// ---- 4. Per key tile: scores, mask, online softmax, PV -------------------------------------------------------------

using Scores = Fragment<kScoreTiles>[kRowTiles];

/// scores += products of 16 elements with the 16 keys of score tiles n and n + 1.
KVJIT_INLINE void multiply_keys(Scores& scores, const u32 (&query)[kRowTiles][4], int n, const char* keys) {
    u32 b[4];
    load_matrices(b, keys);
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
        mma_16x8x16<T1>(scores[m].c[n], query[m], {b[0], b[1]});
        mma_16x8x16<T1>(scores[m].c[n + 1], query[m], {b[2], b[3]});
    }
}

/// Products of the warp's rows with the tile's keys.
KVJIT_INLINE void score_tile(Scores& scores, QueryMatrices& query, const PrefillTiles& tiles) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) scores[m].clear();
    const i32 lane = opaque(lane_index()), key = lane / 16 * 8 + lane % 8, fragment = lane / 8 % 2;
    const char* rows = query_of_lane(tiles);
    const char* keys = tiles.keys[key] + fragment * 16;
    const char* residuals = kQuantised ? tiles.key_residuals[key] + fragment * 16 : nullptr;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
        const int held = step < kHeldSteps ? step : kHeldSteps;
        if (step >= kHeldSteps) load_step(query.a[held], rows, step);
#pragma unroll
        for (int n = 0; n < kScoreTiles; n += 2) {
            multiply_keys(scores, query.a[held], n, keys + 8 * n * kOperandStride + 32 * step);
            if constexpr (kQuantised)
                multiply_keys(scores, query.a[held], n, residuals + 8 * n * kOperandStride + 32 * step);
        }
    }
}

/// What a tile's values are multiplied by, of the rows that the warp scores.
struct Weights {
    u32 probabilities[kScoreTiles / 2][kRowTiles][4];  // as left operands
    float rescale[kRowTiles][2];                       // of the running sums
    u32 seen[kMaskRank > 0 ? kScoreTiles : 1];         // seen_pair of the lane's keys over all rows
};

/// Turns scores into weights. whole: all rows of the team see all keys of the tile.
KVJIT_INLINE void softmax_tile(Weights& weights, Scores& scores, PrefillState& state, const PrefillShared& shared,
                               ProductRule rule, i32 begin, bool whole) {
    if constexpr (kMaskRank > 0) {
#pragma unroll
        for (int n = 0; n < kScoreTiles; ++n) weights.seen[n] = 0;
    }
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
        if (kModified || !whole) modify_tile(scores[m], rows_of(shared.context, shared.tiles, m), rule, begin, whole);
        if constexpr (kMaskRank > 0) {
#pragma unroll
            for (int n = 0; n < kScoreTiles; ++n) weights.seen[n] |= seen_pair(scores[m], n);
        }
        exponentiate_tile(scores[m], state.rows[m], rule.factor, weights.rescale[m]);
#pragma unroll
        for (int step = 0; step < kScoreTiles / 2; ++step)
            pack_fragment(weights.probabilities[step][m], scores[m], step);
    }
}

/// The warp whose rows matrix m of the warp's sums has: its own come first.
KVJIT_INLINE i32 warp_of_matrix(int m) {
    const i32 warp = opaque(thread_index()) / kWarpSize;
    return kTeamWarps == 1 ? warp : warp / kTeamWarps * kTeamWarps + (warp + m) % kTeamWarps;
}

/// Gives the warp's weights to its team. A team_barrier must follow.
KVJIT_INLINE void share_weights(PrefillTiles& tiles, const Weights& weights) {
    if constexpr (kTeamWarps == 1) return;
    SharedWeights& shared = tiles.weights[warp_index()];
#pragma unroll
    for (int step = 0; step < kScoreTiles / 2; ++step)
        store16(shared.probabilities[step][lane_index()], weights.probabilities[step][0]);
    if (lane_pair() == 0) {
#pragma unroll
        for (int h = 0; h < 2; ++h) shared.rescale[lane_row() + 8 * h] = weights.rescale[0][h];
    }
    if constexpr (kMaskRank > 0) {
#pragma unroll
        for (int n = 0; n < kScoreTiles; ++n) {
            if (lane_index() == lane_pair()) shared.seen[n][lane_pair()] = weights.seen[n];
        }
    }
}

/// The weights of the warp's team.
struct TeamWeights {
    const Weights& own;
    const SharedWeights* others[kTeamMatrices];  // of each matrix past the warp's own

    KVJIT_INLINE TeamWeights(const PrefillTiles& tiles, const Weights& weights) : own(weights) {
#pragma unroll
        for (int m = kRowTiles; m < kTeamMatrices; ++m) others[m] = tiles.weights + warp_of_matrix(m);
    }
    KVJIT_INLINE void load_probabilities(u32 (&to)[4], int step, int m) const {
        if (m >= kRowTiles) return load16(to, others[m]->probabilities[step][opaque(lane_index())]);
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = own.probabilities[step][m][i];
    }
    KVJIT_INLINE float rescale(int m, int h) const {
        return m < kRowTiles ? own.rescale[m][h] : others[m]->rescale[lane_row() + 8 * h];
    }
    KVJIT_INLINE u32 seen(int n) const {
        u32 any = own.seen[n];
#pragma unroll
        for (int m = kRowTiles; m < kTeamMatrices; ++m) any |= others[m]->seen[n][lane_pair()];
        return any;
    }
};

/// The first of the tiles of elements that the warp sums.
KVJIT_INLINE i32 first_sum_tile() {
    return kTeamWarps == 1 ? 0 : opaque(thread_index()) / kWarpSize % kTeamWarps * kSumTiles;
}

/// Whether the warp has tile n of its sums: of rows that don't split evenly, the team's last warp has less.
KVJIT_INLINE bool has_sum_tile(i32 first, int n) {
    constexpr int kLeast = kValueTiles - (kTeamWarps - 1) * kSumTiles;
    return n < kLeast || first + n < kValueTiles;
}

/// sums += probabilities * the tile's values.
KVJIT_INLINE void add_tile(Sums& sums, const TeamWeights& weights, const PrefillTiles& tiles) {
    const i32 lane = opaque(lane_index()), key = lane % 16, first = first_sum_tile(), fragment = first + lane / 16;
#pragma unroll
    for (int m = 0; m < kTeamMatrices; ++m) scale_sums(sums[m], {weights.rescale(m, 0), weights.rescale(m, 1)});
#pragma unroll
    for (int step = 0; step < kScoreTiles / 2; ++step) {
        u32 probabilities[kTeamMatrices][4], seen[2];
#pragma unroll
        for (int m = 0; m < kTeamMatrices; ++m) weights.load_probabilities(probabilities[m], step, m);
        if constexpr (kMaskRank > 0) {
#pragma unroll
            for (int i = 0; i < 2; ++i) seen[i] = weights.seen(2 * step + i);
        }
#pragma unroll
        for (int n = 0; n < kSumTiles; n += 2) {
            if (!has_sum_tile(first, n)) break;
            u32 b[4];
            load_matrices_transposed(b, tiles.values[16 * step + key] + (n + fragment) * 16);
            if constexpr (kMaskRank > 0) {
#pragma unroll
                for (int i = 0; i < 4; ++i) b[i] &= seen[i % 2];
            }
#pragma unroll
            for (int m = 0; m < kTeamMatrices; ++m) {
                mma_16x8x16<T1>(sums[m].c[n], probabilities[m], {b[0], b[1]});
                mma_16x8x16<T1>(sums[m].c[n + 1], probabilities[m], {b[2], b[3]});
            }
        }
    }
}

static_assert(kSplitUnit % kBlockKeys == 0);  // without windows a split begins with a tile

/// Number of the block's first tile of keys, counted from key 0.
KVJIT_INLINE i32 first_key_tile(KeyRange keys) {
    return static_cast<i32>(keys.begin) / kBlockKeys;
}

KVJIT_INLINE void attend_tiles(PrefillState& state, HeldScales& held, PrefillShared& shared, ProductRule rule) {
    PrefillTiles& tiles = shared.tiles;
    const BlockContext& context = shared.context;
    QueryMatrices query;
#pragma unroll
    for (int step = 0; step < kHeldSteps; ++step) load_step(query.a[step], query_of_lane(tiles), step);
#pragma unroll 1
    for (i32 begin = first_key_tile(context.keys) * kBlockKeys; begin < static_cast<i32>(context.keys.end);
         begin += kBlockKeys) {
        const i32 tile = begin / kBlockKeys;
        const KeyBounds& bounds = context.bounds[warp_index()];
        const ShortRange keys = {begin, begin + kBlockKeys};
        const bool seen_by_team = bounds.some.meets(keys);
        Weights own;
        wait_keys(tiles, held, context, tile);
        if (seen_by_team) {
            Scores scores;
            score_tile(scores, query, tiles);
            warp_barrier();  // keeps masks from being loaded earlier, for which there are no registers
            softmax_tile(own, scores, state, shared, rule, begin, bounds.all.holds(keys));
            share_weights(tiles, own);
        }
        wait_values(tiles, held, context, tile);
        if (!seen_by_team) continue;
        add_tile(state.sums, {tiles, own}, tiles);
    }
    wait_copies<0>();
    barrier();
}

/// Prepares the first tile: saves the context, copies the queries, and issues the copies of the tile's keys.
KVJIT_INLINE void start_tiles(PrefillShared& shared, HeldScales& held, const AttendWork& work) {
    PrefillTiles& tiles = shared.tiles;
    const ShortRange keys = short_range(work.keys);
    const i32 tile = first_key_tile(work.keys);
    issue_entry(tiles, work.table, keys, tile);
    copy_query(tiles, work);
    commit_copies();
    save_context(shared.context, tiles, work);
    wait_copies<0>();
    sign_query(tiles, query_sign(work));
    barrier();
    store_addresses(tiles, shared.context, tile);
    issue_entry(tiles, work.table, keys, tile + 1);
    barrier();
    issue_tile<0>(tiles, held, keys, tile);
    if constexpr (kQuantised) issue_tile<1>(tiles, held, keys, tile);
}

// ---- 6. Store ------------------------------------------------------------------------------------------------------

/// Stages max and sum of the rows that the warp scores.
KVJIT_INLINE void stage_rows(OutputRows& output, const PrefillState& state, float factor) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) output.stage_state((warp_index() * kRowTiles + m) * 16, state.rows[m], factor);
}

/// The block's packed row that matrix m of the warp's sums begins with.
KVJIT_INLINE i32 row_of_sums(int m) {
    return warp_of_matrix(m) * kRowTiles * 16 + (kTeamWarps == 1 ? 16 * m : 0);
}

/// Stages the warp's sums.
KVJIT_INLINE void stage_sums(OutputRows& output, const Sums& sums) {
    const i32 first = first_sum_tile();
#pragma unroll
    for (int m = 0; m < kTeamMatrices; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const i32 row = row_of_sums(m) + 8 * h + lane_row();
            const float unit = output.rows[row].unit;
#pragma unroll
            for (int n = 0; n < kSumTiles; ++n) {
                if (!has_sum_tile(first, n)) break;
                const float low = sums[m].at(n, h, 0) * unit, high = sums[m].at(n, h, 1) * unit;
                store_pair(output.rows[row].sums + 8 * (first + n) + 2 * lane_pair(), {low, high});
            }
        }
    }
}

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

/// Attends a tile of rows and a split of its keys. The block calls it together.
KVJIT_INLINE void attend_mma(const AttendWork& work) {
    PrefillShared& shared = shared_memory<PrefillShared>();
    const ProductRule rule = product_rule(work);
    PrefillState state;
#pragma unroll
    for (int m = 0; m < kTeamMatrices; ++m) state.sums[m].clear();
    HeldScales held;
    start_tiles(shared, held, work);
    attend_tiles(state, held, shared, rule);
    stage_rows(shared.output, state, rule.factor);
    team_barrier();
    stage_sums(shared.output, state.sums);
    barrier();
    finish_rows<kShape.rows, true>(saved_work(shared.context, work.args), shared.output.parts());
}

struct Mma {
    static constexpr LaunchShape kShape = kvjit::kShape;
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_mma(work); }
};

}  // namespace kvjit

KVJIT_ENTRY(kvjit::Mma::kShape.threads, kvjit::Mma::kShape.blocks_per_sm)
kvjit_attend_prefill(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Mma>(args);
}
