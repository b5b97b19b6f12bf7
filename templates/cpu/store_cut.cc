// store to a cache whose layout cuts rows or pages into pieces: converts or copies (docs/semantics.md, sections 2, 4
// and 5).
#include "common/abi.h"
#include "common/cut.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/cache/cut_rows.h"
#include "cpu/cache/row_codec.h"
#include "cpu/cache/store_work.h"

namespace kvjit {

// ---- 2. Work split: cpu/cache/store_work.h -------------------------------------------------------------------------

// ---- 6. Store ------------------------------------------------------------------------------------------------------

/// Keys or values of the call.
template <int kNeighbours, int kTokens>
struct StoreStream {
    using Encoder = RowEncoder<CutRow>;  // never quantises, so add() writes at once

    abi::Rows from;
    abi::Plane to;
    abi::Pieces pieces;
};

template <int kNeighbours, int kTokens>
KVJIT_INLINE void store_slot(RowEncoder<CutRow>& encoder, const StoreStream<kNeighbours, kTokens>& stream, i64 row,
                             const PageEntry& entry, i64 token, i64 head) {
    const char* from = stream.from.base + row * stream.from.token_stride + head * stream.from.head_stride;
    CutRow::T2 elements[kHeadDim];
    encoder.add(elements, nullptr, reinterpret_cast<const T1*>(from));
    char* to = piece_address<kTokens>(stream.to, stream.pieces, entry.codes, token, head);
    scatter_row<kNeighbours>(to, stream.pieces.element_stride, elements);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_store(const kvjit::abi::StoreArgs* args, const kvjit::abi::TokenItem* item) {
    using namespace kvjit;
    const StoreStream<kKeyPiece, kKeyTokenPiece> key = {args->key, args->cache.key, args->key_pieces};
    const StoreStream<kValuePiece, kValueTokenPiece> value = {args->value, args->cache.value, args->value_pieces};
    store_item(key, value, *args, *item);
}
