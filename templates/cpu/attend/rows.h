// Addresses of cache rows, and rows as padded float32 vectors, for decode and prefill.
#pragma once

#include "common/abi.h"
#include "common/slots.h"
#include "cpu/cache/elements.h"

namespace kvjit {

/// A row is kVectors vectors of kLanes; lanes past kHeadDim are 0 and never stored to output.
inline constexpr int kVectors = (kHeadDim + kLanes - 1) / kLanes;
inline constexpr int kPadDim = kVectors * kLanes;
inline constexpr int kWholeDim = kHeadDim - kHeadDim % kLanes;  // elements in whole vectors
static_assert(kHeadDim % 8 == 0 && (kLanes == 8 || kLanes == 16));

template <int... I>
KVJIT_INLINE vf<16> pad_lanes(vf<8> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, vf<8>(0.0f), I...);
}

/// v, the 8 elements past the last whole vector, followed by zeros.
template <int N = kLanes>
KVJIT_INLINE vf<N> pad(vf<8> v) {
    if constexpr (N == 8)
        return v;
    else
        return pad_lanes(v, Lanes<N>{});
}

/// Addresses of keys or values: their rows for kv head 0, and the stride to the other heads.
template <int kCount>
struct RowList {
    const char* row[kCount];
    const char* scale[kCount];
    i64 head_stride, scale_head_stride;

    KVJIT_INLINE const T2* codes(i64 at, i64 head) const {
        return reinterpret_cast<const T2*>(row[at] + head * head_stride);
    }
    KVJIT_INLINE const T3* scales(i64 at, i64 head) const {
        if constexpr (kQuantised)
            return reinterpret_cast<const T3*>(scale[at] + head * scale_head_stride);
        else
            return nullptr;
    }

    /// Whether rows at..at+15 are at one stride.
    KVJIT_INLINE bool is_even(i64 at) const {
        const char* const* first = row + at;
        const vec<i64, 16> even =
            reinterpret_cast<i64>(first[0]) +
            (first[1] - first[0]) * vec<i64, 16>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        return __builtin_reduce_and(load_raw<i64, 16>(first) == even);
    }
};

/// Prefetches row `at` into the second-level cache, all of it.
template <int kCount>
KVJIT_INLINE void prefetch_row(const RowList<kCount>& list, i64 at, i64 head) {
    const char* codes = reinterpret_cast<const char*>(list.codes(at, head));
#pragma clang loop unroll(full)
    for (int byte = 0; byte < bytes_of<T2>(kHeadDim); byte += 64) prefetch_far(codes + byte);
    if constexpr (kQuantised) prefetch_far(list.scales(at, head));
}

/// A row of the cache: codes and scales.
struct RowAt {
    const T2* codes;
    const T3* scales;
};
/// Those of a row that is read in place of one that must not be.
inline constexpr T2 kZeroCodes[bytes_of<T2>(kHeadDim) / sizeof(T2)] = {};
inline constexpr T3 kZeroScales[kScalesPerRow] = {};

/// Keys or values of positions begin..begin+count-1 of a sequence. They are listed as if kv head `first_head` were 0.
struct Positions {
    const abi::Plane& plane;
    const abi::Plane& scale;
    i64 begin, count;
    i64 first_head = 0;
};

/// rows[k] = first + k * stride, k < count, eight at a time while so many are left.
KVJIT_NOINLINE void list_equidistant(const char** rows, const char* first, i64 stride, i64 count) {
    i64 k = 0;
    if (count >= 8) {
        vec<i64, 8> addresses = reinterpret_cast<i64>(first) + stride * vec<i64, 8>{0, 1, 2, 3, 4, 5, 6, 7};
#pragma clang loop unroll(disable)
        for (; k + 8 <= count; k += 8, addresses += 8 * stride) store_vector(rows + k, addresses);
    }
#pragma clang loop vectorize(disable) unroll(disable)
    for (; k < count; ++k) rows[k] = first + k * stride;
}

/// rows[k] = row of the run's token k. `entry`: the run's entry in the plane's table.
KVJIT_INLINE void list_run(const char** rows, const abi::Plane& plane, i64 entry, const Run& run, i64 head) {
    const char* first = slot_address(plane, entry, run.first, head);
    if constexpr (kPageSize == 1)
        rows[0] = first;
    else
        list_equidistant(rows, first, plane.token_stride, run.count);
}

/// Sets rows of `list` from `at` on to those of `positions`.
template <int kCount>
KVJIT_NOINLINE void list_rows_at(RowList<kCount>& list, i64 at, TableRow table, const Positions& positions) {
    for_each_run(table, positions.begin, positions.begin + positions.count, [&](const Run& run) {
        const i64 first = at + (run.position - positions.begin);
        list_run(list.row + first, positions.plane, run.entry.codes, run, positions.first_head);
        if constexpr (kQuantised)
            list_run(list.scale + first, positions.scale, run.entry.scales(), run, positions.first_head);
    });
}

/// The same, and sets the strides of `list`.
template <int kCount>
KVJIT_INLINE void list_rows(RowList<kCount>& list, i64 at, TableRow table, const Positions& positions) {
    list.head_stride = positions.plane.head_stride;
    list.scale_head_stride = positions.scale.head_stride;
    list_rows_at(list, at, table, positions);
}

/// Sets rows[begin..end-1] to rows[begin-1], which is read once: copying each from its predecessor would wait for the
/// store of that.
KVJIT_INLINE void repeat_last(const char** rows, i64 begin, i64 end) {
    list_equidistant(rows + begin, rows[begin - 1], 0, end - begin);
}

template <int kCount>
KVJIT_INLINE void repeat_last(RowList<kCount>& list, i64 begin, i64 end) {
    repeat_last(list.row, begin, end);
    if constexpr (kQuantised) repeat_last(list.scale, begin, end);
}

/// Sets rows begin..end-1 of the list to row `end`.
template <int kCount>
KVJIT_INLINE void repeat_first(RowList<kCount>& list, i64 begin, i64 end) {
#pragma clang loop unroll(disable)
    for (i64 k = begin; k < end; ++k) {
        list.row[k] = list.row[end];
        if constexpr (kQuantised) list.scale[k] = list.scale[end];
    }
}

/// A row of T1 as kPadDim floats.
KVJIT_INLINE void widen_row(float* to, const T1* from) {
#pragma clang loop unroll(disable)
    for (int d = 0; d < kWholeDim; d += kLanes) store<kLanes>(to + d, load<kLanes>(from + d));
    if constexpr (kWholeDim < kHeadDim) store<kLanes>(to + kWholeDim, pad(load<8>(from + kWholeDim)));
}

/// Elements t..t+N-1 of a mask's row; 0 from element `count` on, where nothing is read.
template <int N = kLanes>
KVJIT_INLINE vf<N> load_mask(const T1* mask, i64 t, i64 count) {
    if constexpr (kMaskRank == 0) return vf<N>(0.0f);
    if (t + N <= count) return load<N>(mask + t);
    vf<N> tail(0.0f);
#pragma clang loop unroll(disable)
    for (i64 i = 0; t + i < count; ++i) tail[i] = load_one(mask + t + i);
    return tail;
}

/// The probability of a key that the mask hides, -0. It adds like 0, yet differs in its sign bit from the +0 of a
/// visible key that underflowed.
inline constexpr i32 kHiddenBits = -0x7fffffff - 1;

template <int N>
KVJIT_INLINE vf<N> mark_hidden(vf<N> probability, vf<N> score) {
    if constexpr (kMaskRank > 0)
        return score == -kInfinity ? from_bits<N>(vi<N>(kHiddenBits)) : probability;
    else
        return probability;
}

/// Zeros `count` floats or pairs, a multiple of kLanes.
template <class E>
KVJIT_INLINE void clear(E* to, i64 count) {
#pragma clang loop unroll(disable)
    for (i64 at = 0; at < count; at += kLanes) store_raw<E, kLanes>(to + at, vec<E, kLanes>(E{}));
}

KVJIT_INLINE i64 smaller(i64 a, i64 b) {
    return a < b ? a : b;
}
KVJIT_INLINE i64 larger(i64 a, i64 b) {
    return a > b ? a : b;
}

}  // namespace kvjit
