// Rows of kHeadDim elements that lie in pieces of kNeighbours elements, `stride` bytes from one piece to the next.
#pragma once

#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/cache/row_codec.h"

namespace kvjit {

/// Writes a contiguous row in pieces.
template <int kNeighbours, class T>
KVJIT_INLINE void scatter_row(char* to, i64 stride, const T* row) {
    static_assert(kHeadDim % kNeighbours == 0);
    for (int d = 0; d < kHeadDim; d += kNeighbours, to += stride)
        move_bytes<static_cast<int>(bytes_of<T>(kNeighbours))>(to, reinterpret_cast<const char*>(row + d));
}

/// Reads a row in pieces as a contiguous row.
template <int kNeighbours, class T>
KVJIT_INLINE void gather_row(T* row, const char* from, i64 stride) {
    static_assert(kHeadDim % kNeighbours == 0);
    for (int d = 0; d < kHeadDim; d += kNeighbours, from += stride)
        move_bytes<static_cast<int>(bytes_of<T>(kNeighbours))>(reinterpret_cast<char*>(row + d), from);
}

}  // namespace kvjit
