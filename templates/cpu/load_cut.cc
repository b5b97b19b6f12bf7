// load from a cache whose layout cuts rows or pages into pieces: converts or copies, each head num_repeat times
// (docs/semantics.md, sections 2, 4 and 5).
#include "common/abi.h"
#include "common/cut.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/cache/cut_rows.h"
#include "cpu/cache/load_work.h"
#include "cpu/cache/row_codec.h"

namespace kvjit {

// ---- 2. Work split: cpu/cache/load_work.h --------------------------------------------------------------------------

// ---- 6. Store: rows of the call ------------------------------------------------------------------------------------

/// Keys or values of the call.
template <int kNeighbours, int kTokens>
struct LoadStream {
    abi::Rows to;
    abi::Plane from;
    abi::Pieces pieces;
    i64 num_repeat;
};

template <int kNeighbours, int kTokens>
KVJIT_INLINE void load_slot(const LoadStream<kNeighbours, kTokens>& stream, i64 row, const PageEntry& entry, i64 token,
                            i64 head) {
    const char* from = piece_address<kTokens>(stream.from, stream.pieces, entry.codes, token, head);
    CutRow::T2 elements[kHeadDim];
    gather_row<kNeighbours>(elements, from, stream.pieces.element_stride);
    const i64 stride = stream.to.head_stride;
    char* to = stream.to.base + row * stream.to.token_stride + head * stream.num_repeat * stride;
    for (i64 r = 0; r < stream.num_repeat; ++r)
        decode_row<CutRow>(reinterpret_cast<T1*>(to + r * stride), elements, nullptr);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_load(const kvjit::abi::LoadArgs* args, const kvjit::abi::TokenItem* item) {
    using namespace kvjit;
    const i64 repeat = args->num_repeat;
    const LoadStream<kKeyPiece, kKeyTokenPiece> key = {args->key, args->cache.key, args->key_pieces, repeat};
    const LoadStream<kValuePiece, kValueTokenPiece> value = {args->value, args->cache.value, args->value_pieces,
                                                             repeat};
    load_item(key, value, *args, *item);
}
