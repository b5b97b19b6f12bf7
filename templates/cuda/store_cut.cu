// store to a cache whose layout cuts rows or pages into pieces: converts or copies (docs/semantics.md, sections 2, 4
// and 5).
#include "common/abi.h"
#include "common/cut.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache/cut_rows.h"
#include "cuda/cache/store_work.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 2. Work split: cuda/cache/store_work.h ------------------------------------------------------------------------

// ---- 6. Store ------------------------------------------------------------------------------------------------------

template <int kNeighbours, int kTokens>
KVJIT_INLINE void store_slot(const abi::Plane& to, const abi::Pieces& pieces, const Slot& slot, i64 head,
                             const char* from) {
    char* row = piece_address<kTokens>(to, pieces, slot.entry.codes, slot.token, head);
    for_each_piece([&](i32 d, int) {
        const LanePiece<T1> lane = gather_elements<kHeadDim, T1>(from, 0, d);
        scatter_elements<kNeighbours>(row, pieces.element_stride, d, convert<CutRow::T2>(lane));
    });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_store(KVJIT_PARAM(kvjit::abi::CudaStoreArgs) args) {
    using namespace kvjit;
    const abi::StoreArgs& store = args.store;
    store_row(args, [&](const TokenPlace& place, const Slot& slot, const char* from) {
        if (place.value)
            store_slot<kValuePiece, kValueTokenPiece>(store.cache.value, store.value_pieces, slot, place.head, from);
        else
            store_slot<kKeyPiece, kKeyTokenPiece>(store.cache.key, store.key_pieces, slot, place.head, from);
    });
}
