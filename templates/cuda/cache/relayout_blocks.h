// Which rows of a relayout a block works on.
#pragma once

#include "common/abi.h"
#include "common/relayout.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- Work split: a block for each (layer, run, key or value), whose warps take its rows in turn --------------------

struct RelayoutRows {
    RunPlace from, to;
    i64 layer;
    bool value;
};

/// f(rows, token, head) for the warp's rows.
template <class F>
KVJIT_INLINE void for_each_row(const abi::CudaRelayoutArgs& args, F&& f) {
    const abi::RelayoutArgs& relayout = args.relayout;
    const i64 run = block_x() / 2 % args.runs, layer = block_x() / 2 / args.runs;
    const abi::TokenRun tokens = relayout.runs[run];
    const RelayoutRows rows = {place_of(relayout.from, run, layer, tokens.from_token),
                               place_of(relayout.to, run, layer, tokens.to_token), layer, block_x() % 2 != 0};
    const i64 heads = relayout.num_kv_heads;
    for (i64 row = warp_index(); row < tokens.count * heads; row += kTokenWarps) f(rows, row / heads, row % heads);
}

}  // namespace kvjit
