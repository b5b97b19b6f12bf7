// merge: combines partial outputs by their lse (docs/semantics.md, section 2).
#include "common/abi.h"
#include "common/indices.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/attend/partial.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

static_assert(kHeadDim % 8 == 0 && kHeadDim <= 256);
static_assert(!kSame<T1, i8_t>);

// ---- 2. Work split: a warp for each (token, query head) ------------------------------------------------------------

/// The parts of one (token, query head). acc, stat: offsets of the first one, in elements of Partial and in floats.
struct Parts {
    i64 token, head;
    i64 acc, stat;
};

KVJIT_INLINE Parts parts_of_warp(const abi::MergeItem& item) {
    const i64 index = block_x() * kTokenWarps + warp_index(), heads = item.head_end - item.head_begin;
    const i64 token = index / heads, head = index % heads;
    return {item.token_begin + token, item.head_begin + head, item.acc + token * item.acc_token + head * item.acc_head,
            item.stat + token * item.stat_token + head * item.stat_head};
}

/// The end of the item's tokens, and of the batch's, if the call has one.
KVJIT_INLINE i64 token_end(const abi::CudaMergeArgs& args) {
    const i64 end = is_given(args.seqstarts) ? index_at(args.seqstarts, args.launch.batch_size) : args.item.token_end;
    return end < args.item.token_end ? end : args.item.token_end;
}

// ---- 5. Merge ------------------------------------------------------------------------------------------------------

KVJIT_INLINE Running merge_head(const abi::CudaMergeArgs& args, const Parts& parts, RowLanes& acc) {
    const abi::MergeArgs& merge = args.merge;
    const Partial* first = reinterpret_cast<const Partial*>(merge.acc) + parts.acc;
    // An lse of -inf or, as other libraries have it, +inf means "no key".
    const auto stat = [&](i64 part) {
        const float lse = merge.max[parts.stat + part * args.item.stat_part];
        return Running{lse == kInfinity ? -kInfinity : lse, 1.0f};
    };
    return merge_parts<true>(acc, args.item.parts, stat, [&](i64 part) { return first + part * args.item.acc_part; });
}

// ---- 6. Store ------------------------------------------------------------------------------------------------------

KVJIT_INLINE void write_head(const abi::CudaMergeArgs& args) {
    const Parts parts = parts_of_warp(args.item);
    if (is_faulty(args.launch) || parts.token >= token_end(args)) return;
    RowLanes acc;
    const Running running = merge_head(args, parts, acc);
    const abi::MergeArgs& merge = args.merge;
    const Running whole = is_empty_part(running.max) ? Running{0.0f, 1.0f} : add_sink(running, merge.sinks, parts.head);
    char* out = merge.output.base + parts.token * merge.output.token_stride + parts.head * merge.output.head_stride;
    // Without a key the sum is 0, unless a part was NaN.
    finish_row(reinterpret_cast<T1*>(out), acc, whole);
    if (merge.lse && lane_index() == 0)
        merge.lse[parts.token * merge.lse_token_stride + parts.head * merge.lse_head_stride] = finish_lse(running);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_merge(KVJIT_PARAM(kvjit::abi::CudaMergeArgs) args) {
    kvjit::write_head(args);
}
