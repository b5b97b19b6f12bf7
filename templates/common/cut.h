// Layouts that cut rows into pieces of neighbouring elements, or pages into pieces of tokens (docs/semantics.md,
// section 4).
#pragma once

#include "common/abi.h"
#include "common/quant.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

/// Element of a cache in pieces, which is never quantised. T1 where the spec block is, as the checked-in one is, so
/// that this file compiles.
template <bool kCodes>
struct CutElement {
    using Type = T2;
};
template <>
struct CutElement<true> {
    using Type = T1;
};
using CutRow = RowFormat<CutElement<kQuantised>::Type, T3, 0, kHeadDim>;

/// slot_address in a plane whose pages are cut into pieces of kTokens tokens; 0: pages are whole.
template <int kTokens>
KVJIT_INLINE char* piece_address(const abi::Plane& plane, const abi::Pieces& pieces, i64 entry, i64 token, i64 head) {
    if constexpr (kTokens == 0) {
        return slot_address(plane, entry, token, head);
    } else {
        const u64 all = static_cast<u64>(token);
        const i64 piece = static_cast<i64>(all / kTokens), within = static_cast<i64>(all % kTokens);
        return slot_address(plane, entry, within, head) + piece * pieces.token_stride;
    }
}

}  // namespace kvjit
