// Rows of a relayout where a layout cuts rows or pages into pieces (docs/semantics.md, section 4).
#pragma once

#include "common/relayout.h"

namespace kvjit {

/// How one of the caches writes keys or values: rows in pieces of kElements, pages in pieces of kTokens (0: whole). One
/// with scales has neither, even if the checked-in spec block says so.
template <class Format, int kElements, int kTokens>
struct CutFormat {
    using Row = Format;
    using T2 = typename Row::T2;
    using T3 = typename Row::T3;
    static constexpr int kNeighbours = Row::kQuantised ? kHeadDim : kElements;
    static constexpr bool kRowIsWhole = kNeighbours == kHeadDim;
    static constexpr int kTokenPiece = Row::kQuantised ? 0 : kTokens;
};
using FromKeys = CutFormat<FromRow, kKeyPiece, kKeyTokenPiece>;
using FromValues = CutFormat<FromRow, kValuePiece, kValueTokenPiece>;
using ToKeys = CutFormat<ToRow, kToKeyPiece, kToKeyTokenPiece>;
using ToValues = CutFormat<ToRow, kToValuePiece, kToValueTokenPiece>;

/// Keys or values of a run in one of the caches, and one layer.
struct CutPlane {
    RunPlane codes, scales;  // of token 0 of the run's page
    RunPlace place;
    abi::Pieces pieces;
};

/// Rows of the page that the run lies in, from the page's first token on.
KVJIT_INLINE RunPlane page_plane(const abi::LayerPlane& at, i64 entry, i64 layer) {
    return run_plane(at, entry, {0, 0, 0, 1}, layer);
}

KVJIT_INLINE CutPlane cut_keys(const abi::RelayoutSide& side, const RunPlace& place, i64 layer) {
    return {page_plane(side.key, place.entry, layer), page_plane(side.key_scale, place.scale_entry, layer), place,
            side.key_pieces};
}

KVJIT_INLINE CutPlane cut_values(const abi::RelayoutSide& side, const RunPlace& place, i64 layer) {
    return {page_plane(side.value, place.entry, layer), page_plane(side.value_scale, place.scale_entry, layer), place,
            side.value_pieces};
}

template <class Cut>
KVJIT_INLINE char* cut_row(const CutPlane& plane, i64 i, i64 head) {
    const i64 token = plane.place.token + i * plane.place.token_step;
    if constexpr (Cut::kTokenPiece == 0) {
        return row_at(plane.codes, token, head);
    } else {
        const u64 all = static_cast<u64>(token);
        const i64 piece = static_cast<i64>(all / Cut::kTokenPiece), within = static_cast<i64>(all % Cut::kTokenPiece);
        return row_at(plane.codes, within, head) + piece * plane.pieces.token_stride;
    }
}

/// Its scales: caches that have some are not in pieces.
template <class Cut>
KVJIT_INLINE char* cut_scales(const CutPlane& plane, i64 i, i64 head) {
    static_assert(Cut::kRowIsWhole && Cut::kTokenPiece == 0);
    return row_at(plane.scales, plane.place.token + i * plane.place.token_step, head);
}

}  // namespace kvjit
