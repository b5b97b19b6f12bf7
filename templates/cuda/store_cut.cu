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
KVJIT_INLINE void store_slot(const abi::Plane& plane, const abi::Pieces& pieces, const TokenPlace& place,
                             const Slot& slot, HeadRows from) {
    char* first = piece_address<kTokens>(plane, pieces, slot.entry.codes, slot.token, place.head_begin);
    HeadRows to = {first, plane.head_stride};
    for_each_head(place, [&] {
        char* row = to.next();
        const char* given = from.next();
        for_each_piece([&](i32 d, int) {
            const LanePiece<T1> lane = gather_elements<kHeadDim, T1>(given, 0, d);
            scatter_elements<kNeighbours>(row, pieces.element_stride, d, convert<CutRow::T2>(lane));
        });
    });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kRowShape.threads, kvjit::kRowShape.blocks_per_sm)
kvjit_store(KVJIT_PARAM(kvjit::abi::CudaStoreArgs) args) {
    using namespace kvjit;
    const abi::StoreArgs& store = args.store;
    store_rows(args, [&](const TokenPlace& place, const Slot& slot, const HeadRows& from) {
        if (place.value)
            store_slot<kValuePiece, kValueTokenPiece>(store.cache.value, store.value_pieces, place, slot, from);
        else
            store_slot<kKeyPiece, kKeyTokenPiece>(store.cache.key, store.key_pieces, place, slot, from);
    });
}
