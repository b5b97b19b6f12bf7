// load from a cache whose layout cuts rows or pages into pieces: converts or copies, each head num_repeat times
// (docs/semantics.md, sections 2, 4 and 5).
#include "common/abi.h"
#include "common/cut.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache/cut_rows.h"
#include "cuda/cache/load_work.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 2. Work split: cuda/cache/load_work.h -------------------------------------------------------------------------

// ---- 6. Store: rows of the call ------------------------------------------------------------------------------------

template <int kNeighbours, int kTokens>
KVJIT_INLINE void load_slot(const abi::Plane& plane, const abi::Pieces& pieces, const TokenPlace& place,
                            const Slot& slot, LoadedRows to) {
    char* first = piece_address<kTokens>(plane, pieces, slot.entry.codes, slot.token, place.head_begin);
    HeadRows from = {first, plane.head_stride};
    for_each_head(place, [&] {
        const char* row = from.next();
        char* copies = to.rows.next();
        for_each_piece([&](i32 d, int) {
            const LanePiece<T1> lane =
                convert<T1>(gather_elements<kNeighbours, CutRow::T2>(row, pieces.element_stride, d));
            char* copy = copies;
#pragma unroll 1
            for (i64 r = 0; r < to.repeat; ++r, copy += to.stride) scatter_elements<kHeadDim>(copy, 0, d, lane);
        });
    });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kRowShape.threads, kvjit::kRowShape.blocks_per_sm)
kvjit_load(KVJIT_PARAM(kvjit::abi::CudaLoadArgs) args) {
    using namespace kvjit;
    const abi::LoadArgs& load = args.load;
    load_rows(args, [&](const TokenPlace& place, const Slot& slot, const LoadedRows& to) {
        if (place.value)
            load_slot<kValuePiece, kValueTokenPiece>(load.cache.value, load.value_pieces, place, slot, to);
        else
            load_slot<kKeyPiece, kKeyTokenPiece>(load.cache.key, load.key_pieces, place, slot, to);
    });
}
