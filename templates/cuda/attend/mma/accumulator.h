// A lane's part of the accumulators of matrix products, tiles of 16 rows and 8 columns side by side. In lane 4*g + t
// the registers c[n] of tile n are (PTX ISA, "Matrix Fragments for mma.m16n8k16")
//     c[n][0], c[n][1]   row g      columns 8n + 2t, 8n + 2t + 1
//     c[n][2], c[n][3]   row g + 8  the same columns
// So a lane has two rows, g (h = 0) and g + 8 (h = 1), and two neighbouring columns of each tile.
#pragma once

#include "cuda/attend/mma/pairs.h"
#include "cuda/cache/row_lanes.h"

namespace kvjit {

KVJIT_INLINE i32 lane_row() {
    return lane_index() / 4;
}
KVJIT_INLINE i32 lane_pair() {
    return lane_index() % 4;
}

/// Place of one of a lane's elements: row h, tile n, first (i = 0) or second column.
struct FragmentPlace {
    int n, h, i;

    /// The column, counted from the lane's first one: a constant.
    KVJIT_INLINE int distance() const { return 8 * n + i; }
    KVJIT_INLINE i32 column() const { return distance() + 2 * lane_pair(); }
};

template <int kTiles>
struct Fragment {
    float c[kTiles][4];

    KVJIT_INLINE float& at(int n, int h, int i) { return c[n][2 * h + i]; }
    KVJIT_INLINE float at(int n, int h, int i) const { return c[n][2 * h + i]; }

    /// f(element, place) for the elements of the lane's row h, in ascending order of columns.
    template <class F>
    KVJIT_INLINE void for_row(int h, F&& f) {
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
            for (int i = 0; i < 2; ++i) f(at(n, h, i), FragmentPlace{n, h, i});
        }
    }
    /// f(element, place) for all of the lane's elements, tile by tile.
    template <class F>
    KVJIT_INLINE void for_each(F&& f) {
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) f(c[n][i], FragmentPlace{n, i / 2, i % 2});
        }
    }
    KVJIT_INLINE void clear() {
        for_each([](float& element, FragmentPlace) { element = 0.0f; });
    }
};

/// Tiles 2k and 2k + 1, rounded to T1, as the left operand of a product over their 16 columns.
template <int kTiles>
KVJIT_INLINE void pack_fragment(u32 (&a)[4], const Fragment<kTiles>& from, int k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int n = 2 * k + i / 2, h = i % 2;
        a[i] = pack_pair(from.at(n, h, 0), from.at(n, h, 1));
    }
}

}  // namespace kvjit
