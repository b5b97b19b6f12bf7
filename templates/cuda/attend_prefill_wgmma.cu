// attend for many query rows, by matrix products of warpgroups (docs/semantics.md, section 3), as
// cuda/attend_prefill_mma.cu does it by those of warps. While products run in the background, lanes make probabilities
// of scores: those of the other warpgroup or, with soft caps, of both.
#include "cuda/attend/mma/output_rows.h"
#include "cuda/attend/mma/softmax.h"
#include "cuda/attend/mma/warpgroup_tiles.h"
#include "cuda/attend/partial.h"
#include "cuda/attend/prefill.h"
#include "cuda/attend/work.h"
#include "cuda/machine/warpgroup/contract.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 1. Contract ----------------------------------------------------------------------------------------------------

// Keys that a mask hides from all rows have probability 0, but their values, times 0, may be NaN: they would have to
// become zeros in shared memory.
static_assert(kMaskRank == 0);

inline constexpr LaunchShape kShape = wgmma_prefill_shape(kFormat);
inline constexpr int kScoreSteps = kHeadDim / 16;    // of products that sum over elements
inline constexpr int kScoreTiles = kBlockKeys / 8;   // of 8 keys
inline constexpr int kValueSteps = kBlockKeys / 16;  // of products that sum over keys
/// Tiles of 8 elements that one product has, and how many of these make a row.
inline constexpr int kPartTiles = kHeadDim % 128 == 0 ? 16 : 8;
inline constexpr int kParts = kHeadDim / 8 / kPartTiles;

using OutputRows = OutputRowsOf<kBlockRows>;

struct alignas(kStripeAlignment) PrefillShared {
    union {
        WarpgroupTiles tiles;
        OutputRows output;
    };
    BlockContext context;
};

/// Where PrefillShared lies in the block's shared memory, which isn't aligned to as much as stripes are.
struct alignas(16) SharedBytes {
    char bytes[kShape.shared_bytes];
};
static_assert(sizeof(PrefillShared) + kStripeAlignment <= kShape.shared_bytes);
static_assert(kShape.shared_bytes <= kWarpgroupSharedBytes);

/// Of the warp's 16 rows.
struct PrefillState {
    Fragment<kPartTiles> sums[kParts];
    RowState rows;
};

// ---- 2. Work split: cuda/attend/prefill.h; warpgroups split the rows ------------------------------------------------

/// The first of the warp's rows.
KVJIT_INLINE i32 first_row() {
    return opaque(thread_index()) / kWarpSize * 16;
}

// ---- 3. Q: copied by copy_query, read by products -------------------------------------------------------------------

// ---- 4. Per key tile: scores, mask, online softmax, PV --------------------------------------------------------------

using Scores = Fragment<kScoreTiles>;

/// Begins products of the warpgroup's queries with a tile's keys, as one group.
KVJIT_INLINE void begin_scores(Scores& scores, SharedMatrix query, const WarpgroupTiles& tiles, i32 tile) {
    const SharedMatrix keys = tiles.keys[tile % 2].from(0);
#pragma unroll
    for (int step = 0; step < kScoreSteps; ++step) {
        const SharedMatrix a = query + Stripes<kBlockRows>::to_columns(step);
        const SharedMatrix b = keys + Stripes<kBlockKeys>::to_columns(step);
        if (step == 0)
            multiply_transposed<T1, false>(scores.c, a, b);
        else
            multiply_transposed<T1, true>(scores.c, a, b);
    }
    end_products();
}

/// A tile's probabilities, as left operands.
using Probabilities = u32[kValueSteps][4];

/// Begins sums += probabilities * a tile's values, as one group.
KVJIT_INLINE void begin_sums(PrefillState& state, const Probabilities& probabilities, const WarpgroupTiles& tiles,
                             i32 tile) {
    const SharedMatrix values = tiles.values[tile % 2].from(0);
#pragma unroll
    for (int step = 0; step < kValueSteps; ++step) {
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            const i32 columns = Stripes<kBlockKeys>::to_columns(part * kPartTiles / 2);
            multiply<T1>(state.sums[part].c, probabilities[step], values + (columns + 16 * step * kStripeBytes));
        }
    }
    end_products();
}

KVJIT_INLINE void pin_sums(PrefillState& state) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) pin(state.sums[part].c);
}

/// sums *= rescale, once their products are done and before the next begin.
KVJIT_INLINE void scale_all(PrefillState& state, const float (&rescale)[2]) {
    pin_sums(state);
#pragma unroll
    for (int part = 0; part < kParts; ++part) scale_sums(state.sums[part], rescale);
    pin_sums(state);
}

/// Turns scores into probabilities, which stay where they are. rescale: of the sums.
KVJIT_INLINE void softmax_tile(Scores& scores, float (&rescale)[2], PrefillState& state, const PrefillShared& shared,
                               ProductRule rule, i32 begin) {
    const bool whole = shared.context.bounds[warp_index()].all.holds(ShortRange{begin, begin + kBlockKeys});
    if (kModified || !whole)
        modify_tile(scores, rows_from(shared.context, shared.tiles.terms, first_row() + lane_row()), rule, begin,
                    whole);
    exponentiate_tile<true>(scores, state.rows, rule.factor, rescale);
}

/// Makes left operands of probabilities.
KVJIT_INLINE void pack_tile(Probabilities& probabilities, Scores& scores) {
#pragma unroll
    for (int step = 0; step < kValueSteps; ++step) {
        pack_fragment(probabilities[step], scores, step);
        pin(probabilities[step]);
    }
    pin(scores.c);
}

/// Makes what the thread has copied visible to products; change_over must follow.
KVJIT_INLINE void publish_copies() {
    wait_copies<0>();
    publish_to_products();
}

/// Issues the copies of the values of the tile after `tile` and of the keys of the one after that.
KVJIT_INLINE void copy_ahead(PrefillShared& shared, KeyCopies& copies, const KeyTiles& range, i32 tile) {
    copies.issue_values(shared.tiles, range, tile + 1);
    copies.issue_keys(shared.tiles, shared.context.cache, range, tile + 2);
    commit_copies();
    copies.load_entry(shared.context.table, range, tile + 3);
}

/// What a warpgroup's loop over tiles works on.
struct TileLoop {
    PrefillState& state;
    PrefillShared& shared;
    KeyCopies& copies;
    const KeyTiles& range;
    ProductRule rule;
    Scores& scores;
    Probabilities& probabilities;
    // By shuffles, so that ptxas knows that lanes agree.
    i32 last = shuffle(range.count - 1, 0);
    i32 group = shuffle(opaque(thread_index()) / (kGroupWarps * kWarpSize), 0);
    SharedMatrix query = shared.tiles.query.from(group * kGroupWarps * 16);

    KVJIT_INLINE void multiply_first() {
        begin_products();
        begin_scores(scores, query, shared.tiles, 0);
        wait_products<0>();
        pin(scores.c);
    }
    KVJIT_INLINE void softmax(float (&rescale)[2], i32 tile) {
        softmax_tile(scores, rescale, state, shared, rule, range.begin(tile));
    }
    /// Begins products of the keys of tile + 1 and, behind them, of the values of `tile`. Beside them the first
    /// warpgroup copies keys of tile + 2 and values of tile + 1, over those of `tile` and tile - 1.
    KVJIT_INLINE void begin_next(i32 tile) {
        begin_products();
        begin_scores(scores, query, shared.tiles, tile + 1);
        begin_sums(state, probabilities, shared.tiles, tile);
        if (group == 0) copy_ahead(shared, copies, range, tile);
    }
    KVJIT_INLINE void multiply_last() {
        begin_products();
        begin_sums(state, probabilities, shared.tiles, last);
        wait_products<0>();
        pin_sums(state);
    }
};

/// The warpgroups take turns at the tensor cores and at the lanes' arithmetic, half a turn of the loop apart. In half
/// turn 2 t + w warpgroup w makes probabilities of its scores of tile t, in the next one it multiplies values of t and
/// keys of t + 1; before the loop each multiplies keys of tile 0. What the first one copies while it multiplies must be
/// there two half turns later.
KVJIT_INLINE void attend_apart(TileLoop& loop) {
    if (loop.group != 0) change_over<kShape.threads>();
    loop.multiply_first();
    change_over<kShape.threads>();
#pragma unroll 1
    for (i32 tile = 0;; ++tile) {
        float rescale[2];
        loop.softmax(rescale, tile);
        scale_all(loop.state, rescale);
        pack_tile(loop.probabilities, loop.scores);
        if (loop.group == 0) publish_copies();
        change_over<kShape.threads>();
        if (tile == loop.last) break;
        loop.begin_next(tile);
        wait_products<0>();
        pin(loop.scores.c);
        pin_sums(loop.state);
        change_over<kShape.threads>();
    }
    loop.multiply_last();
    if (loop.group == 0) change_over<kShape.threads>();
}

/// Both warpgroups do the same at the same time. Each makes probabilities of its scores of a tile beside its own
/// products of the values of the tile before.
KVJIT_INLINE void attend_together(TileLoop& loop) {
    loop.multiply_first();
#pragma unroll 1
    for (i32 tile = 0;; ++tile) {
        float rescale[2];
        loop.softmax(rescale, tile);
        pin(loop.scores.c);
        // Between softmax and the wait, as it has a branch: within a block of code ptxas moves waits up, and then
        // softmax would run after the products instead of beside them.
        if (loop.group == 0) publish_copies();
        wait_products<0>();
        scale_all(loop.state, rescale);
        pack_tile(loop.probabilities, loop.scores);
        change_over<kShape.threads>();
        if (tile == loop.last) break;
        loop.begin_next(tile);
        wait_products<1>();
        pin(loop.scores.c);
    }
    loop.multiply_last();
}

KVJIT_INLINE void attend_tiles(PrefillState& state, PrefillShared& shared, KeyCopies& copies, const KeyTiles& range,
                               ProductRule rule) {
    Scores scores;
    Probabilities probabilities;
    TileLoop loop = {state, shared, copies, range, rule, scores, probabilities};
    // With soft caps lanes work for longer than tensor cores, and two warps on a scheduler wait less than one.
    if constexpr (kSoftCap)
        attend_together(loop);
    else
        attend_apart(loop);
}

/// Prepares the first tile: saves the context, copies the queries and the first tiles' keys and values.
KVJIT_INLINE void start_tiles(PrefillShared& shared, KeyCopies& copies, const KeyTiles& range, const AttendWork& work) {
    WarpgroupTiles& tiles = shared.tiles;
    const bool copies_keys = warp_index() < kGroupWarps;
    abi::Cache cache;  // as save_context stores it, where others see it only after the barrier
    cache.key = plane_of_head(work.args.cache.key, work.kv_head);
    cache.value = plane_of_head(work.args.cache.value, work.kv_head);
    Index second_entry = 0;
    if (copies_keys) {
        copies.load_entry(work.table, range, 0);
        second_entry = KeyCopies::entry_of(work.table, range, 1);
    }
    copy_query(tiles, work);
    if (copies_keys) copies.issue_keys(tiles, cache, range, 0);
    commit_copies();
    if (copies_keys) {
        copies.issue_values(tiles, range, 0);
        copies.entry = second_entry;
        copies.issue_keys(tiles, cache, range, 1);
        copies.load_entry(work.table, range, 2);
    }
    commit_copies();
    save_context(shared.context, tiles.terms, work, [&] { return key_bounds(work, first_row(), 16); });
    wait_copies<1>();
    sign_query(tiles, query_sign(work));
    publish_to_products();
    barrier();
}

// ---- 6. Store -------------------------------------------------------------------------------------------------------

/// Stages the warp's rows.
KVJIT_INLINE void stage_rows(OutputRows& output, const PrefillState& state, float factor) {
    output.stage_state(first_row(), state.rows, factor);
    warp_barrier();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        OutputRows::Row& row = output.rows[first_row() + 8 * h + lane_row()];
        const float unit = row.unit;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
#pragma unroll
            for (int n = 0; n < kPartTiles; ++n) {
                const Fragment<kPartTiles>& sums = state.sums[part];
                store_pair(row.sums + 8 * (part * kPartTiles + n) + 2 * lane_pair(),
                           {sums.at(n, h, 0) * unit, sums.at(n, h, 1) * unit});
            }
        }
    }
}

// ---- 7. Entry point -------------------------------------------------------------------------------------------------

KVJIT_INLINE PrefillShared& prefill_shared() {
    char* bytes = shared_memory<SharedBytes>().bytes;
    const i32 past = static_cast<i32>(reinterpret_cast<u64>(bytes) % kStripeAlignment);
    return *reinterpret_cast<PrefillShared*>(bytes + (kStripeAlignment - past) % kStripeAlignment);
}

/// Attends a tile of rows and a split of its keys. The block calls it together.
KVJIT_INLINE void attend_wgmma(const AttendWork& work) {
    PrefillShared& shared = prefill_shared();
    const ProductRule rule = product_rule(work);
    const KeyTiles range(work.keys);
    PrefillState state;
#pragma unroll
    for (int part = 0; part < kParts; ++part) state.sums[part].clear();
    KeyCopies copies;
    start_tiles(shared, copies, range, work);
    if (ballot(range.count > 0) != 0) attend_tiles(state, shared, copies, range, rule);
    wait_copies<0>();
    barrier();
    stage_rows(shared.output, state, rule.factor);
    barrier();
    finish_rows<kShape.rows, true, kBlockWarps>(saved_work(shared.context, work.args), shared.output.parts());
}

/// attend_block, but by a vote, which is the same in all lanes, as ptxas knows: where lanes might part it runs products
/// one after the other.
KVJIT_INLINE void attend_block_by_vote(const abi::CudaAttendArgs& args) {
    PrefillBlock block;
    const bool works = !is_faulty(args.launch) && find_block<kShape.rows>(block, args, block_x(), block_y());
    if (ballot(works) != 0) attend_wgmma(block.work(args.attend));
}

}  // namespace kvjit

KVJIT_ENTRY(kvjit::kShape.threads, kvjit::kShape.blocks_per_sm)
kvjit_attend_prefill(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block_by_vote(args);
}
