// relayout: writes tokens of one cache to another, copied or converted (docs/semantics.md, sections 2 and 6).
#include "common/abi.h"
#include "common/relayout.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache/relayout_blocks.h"
#include "cuda/cache/row_codec.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- Converting ----------------------------------------------------------------------------------------------------

template <class From, class To>
KVJIT_INLINE void convert_row(const RunRows& to, const RunRows& from, i64 token, i64 head) {
    const char* codes = row_at(from.codes, token, head);
    const char* scales = row_at(from.scales, token, head);
    RowPieces x = {};
    for_each_piece([&](i32 d, int i) {
        load_cache<From>(x[i], codes, scales, d);
        for (int k = 0; k < kPiece; ++k) x[i][k] = round_to<T1>(x[i][k]);
    });
    encode_pieces<To>(row_at(to.codes, token, head), reinterpret_cast<typename To::T3*>(row_at(to.scales, token, head)),
                      x);
}

// ---- Copying -------------------------------------------------------------------------------------------------------

template <class Row>
KVJIT_INLINE void copy_row(const RunRows& to, const RunRows& from, i64 token, i64 head) {
    move_row<typename Row::T2>(row_at(to.codes, token, head), row_at(from.codes, token, head));
    if constexpr (Row::kQuantised) {
        using Scale = typename Row::T3;
        auto* scales = reinterpret_cast<Scale*>(row_at(to.scales, token, head));
        const auto* from_scales = reinterpret_cast<const Scale*>(row_at(from.scales, token, head));
        for (i32 g = lane_index(); g < Row::kScales; g += kWarpSize) scales[g] = from_scales[g];
    }
}

// ---- 2. Work split: cuda/cache/relayout_blocks.h -------------------------------------------------------------------

template <class From, class To>
KVJIT_INLINE void move_rows(const abi::CudaRelayoutArgs& args) {
    for_each_row(args, [&](const RelayoutRows& rows, i64 token, i64 head) {
        const RunRows from = run_rows<From>(args.relayout.from, rows.from, rows.layer, rows.value);
        const RunRows to = run_rows<To>(args.relayout.to, rows.to, rows.layer, rows.value);
        if constexpr (kSame<From, To>)
            copy_row<To>(to, from, token, head);
        else
            convert_row<From, To>(to, from, token, head);
    });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_relayout(KVJIT_PARAM(kvjit::abi::CudaRelayoutArgs) args) {
    kvjit::move_rows<kvjit::FromRow, kvjit::ToRow>(args);
}
