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
KVJIT_INLINE void load_slot(const abi::Plane& from, const abi::Pieces& pieces, const Slot& slot, i64 head,
                            const LoadedRow& to) {
    const char* row = piece_address<kTokens>(from, pieces, slot.entry.codes, slot.token, head);
    for_each_piece([&](i32 d, int) {
        const LanePiece<T1> lane = convert<T1>(gather_elements<kNeighbours, CutRow::T2>(row, pieces.element_stride, d));
        for (i64 r = 0; r < to.repeat; ++r) scatter_elements<kHeadDim>(to.first + r * to.stride, 0, d, lane);
    });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_load(KVJIT_PARAM(kvjit::abi::CudaLoadArgs) args) {
    using namespace kvjit;
    const abi::LoadArgs& load = args.load;
    load_row(args, [&](const TokenPlace& place, const Slot& slot, const LoadedRow& to) {
        if (place.value)
            load_slot<kValuePiece, kValueTokenPiece>(load.cache.value, load.value_pieces, slot, place.head, to);
        else
            load_slot<kKeyPiece, kKeyTokenPiece>(load.cache.key, load.key_pieces, slot, place.head, to);
    });
}
