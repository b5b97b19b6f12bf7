// relayout where a layout cuts rows or pages into pieces: copies or converts row by row (docs/semantics.md, sections 2
// and 4).
#include "common/abi.h"
#include "common/relayout.h"
#include "common/relayout_cut.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache/cut_rows.h"
#include "cuda/cache/relayout_blocks.h"
#include "cuda/cache/row_codec.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/shape.h"

namespace kvjit {

/// Loads the lane's pieces of a row of From, rounded to Between.
template <class From, class Between>
KVJIT_INLINE void read_pieces(RowPieces& x, const CutPlane& plane, i64 token, i64 head) {
    const char* row = cut_row<From>(plane, token, head);
    for_each_piece([&](i32 d, int i) {
        if constexpr (From::Row::kQuantised)
            load_cache<typename From::Row>(x[i], row, cut_scales<From>(plane, token, head), d);
        else
            load_elements<typename From::T2>(
                x[i],
                gather_elements<From::kNeighbours, typename From::T2>(row, plane.pieces.element_stride, d).bytes(), 0);
        for (int k = 0; k < kPiece; ++k) x[i][k] = round_to<Between>(x[i][k]);
    });
}

/// Stores a row's pieces as a row of To. The warp calls it together.
template <class To>
KVJIT_INLINE void write_pieces(const CutPlane& plane, i64 token, i64 head, const RowPieces& x) {
    char* row = cut_row<To>(plane, token, head);
    if constexpr (To::Row::kQuantised) {
        encode_pieces<typename To::Row>(row, reinterpret_cast<typename To::T3*>(cut_scales<To>(plane, token, head)), x);
    } else {
        for_each_piece([&](i32 d, int i) {
            LanePiece<typename To::T2> lane;
            store_elements(Of<typename To::T2>{}, lane.bytes(), x[i]);
            scatter_elements<To::kNeighbours>(row, plane.pieces.element_stride, d, lane);
        });
    }
}

template <class From, class To, class Between = T1>
KVJIT_INLINE void move_row(const CutPlane& to, const CutPlane& from, i64 token, i64 head) {
    if constexpr (!kSame<typename From::Row, typename To::Row>) {
        RowPieces x = {};
        read_pieces<From, Between>(x, from, token, head);
        write_pieces<To>(to, token, head, x);
    } else {
        using T = typename To::T2;
        const char* read = cut_row<From>(from, token, head);
        char* write = cut_row<To>(to, token, head);
        for_each_piece([&](i32 d, int) {
            const auto lane = gather_elements<From::kNeighbours, T>(read, from.pieces.element_stride, d);
            scatter_elements<To::kNeighbours>(write, to.pieces.element_stride, d, lane);
        });
    }
}

// ---- 2. Work split: cuda/cache/relayout_blocks.h -------------------------------------------------------------------

KVJIT_INLINE void move_rows(const abi::CudaRelayoutArgs& args) {
    for_each_row(args, [&](const RelayoutRows& rows, i64 token, i64 head) {
        if (rows.value)
            move_row<FromValues, ToValues>(cut_values(args.relayout.to, rows.to, rows.layer),
                                           cut_values(args.relayout.from, rows.from, rows.layer), token, head);
        else
            move_row<FromKeys, ToKeys>(cut_keys(args.relayout.to, rows.to, rows.layer),
                                       cut_keys(args.relayout.from, rows.from, rows.layer), token, head);
    });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_relayout(KVJIT_PARAM(kvjit::abi::CudaRelayoutArgs) args) {
    kvjit::move_rows(args);
}
