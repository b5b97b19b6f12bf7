// What prefill's tensor-core kernels share beside their products: what a block works on, and copies of its queries to
// shared memory. kWarps, kRows, kThreads: of the block.
#pragma once

#include "cuda/attend/mma/softmax.h"
#include "cuda/attend/work.h"
#include "cuda/machine/contract.h"
#include "cuda/shape.h"

namespace kvjit {

/// Keys that some, and that all, of a team's rows see.
struct KeyBounds {
    ShortRange some, all;
};

/// What the block works on. In shared memory, as it is needed rarely, and the sums take nearly all registers.
template <int kWarps, int kRows>
struct alignas(16) BlockContextOf {
    CallSequence sequence;
    TableRow table;
    i64 kv_head, row_begin, row_end;
    KeyRange keys;
    TileSplits splits;
    i32 reach_before;  // Reach::before, the same for all rows
    abi::Cache cache;  // planes whose head 0 is the block's kv head
    KeyBounds bounds[kWarps];
    i32 seen_end[kRows];  // of each row's keys; their begin is its position less reach_before
};

KVJIT_INLINE abi::Plane plane_of_head(abi::Plane plane, i64 head) {
    plane.base += head * plane.head_stride;
    return plane;
}

/// Of a team of `rows` rows, the block's from row `first` on.
KVJIT_INLINE KeyBounds key_bounds(const AttendWork& work, i32 first_row, i32 rows) {
    const i64 first = work.row_begin + first_row, end = first + rows;
    if (first >= work.row_end) return {{0, 0}, {0, 0}};
    const i64 last = (end < work.row_end ? end : work.row_end) - 1;
    const ShortRange low = seen_by_row(work, first), high = seen_by_row(work, last);
    return {{low.begin, high.end}, {high.begin, low.end}};
}

/// Fills the context, and `terms` of each row, where rows have any. bounds(): of the warp's team. The block calls
/// it together, and a barrier must follow.
template <int kWarps, int kRows, class Bounds>
KVJIT_INLINE void save_context(BlockContextOf<kWarps, kRows>& context, RowTerms* terms, const AttendWork& work,
                               Bounds&& bounds) {
    const i32 r = opaque(thread_index());
    if (r < kRows) context.seen_end[r] = seen_by_row(work, work.row_begin + r).end;
    if (kRowTerms && r < kRows) terms[r] = terms_of_row(work, work.row_begin + r);
    if (lane_index() == 0) context.bounds[warp_index()] = bounds();
    if (r != 0) return;
    context.sequence = work.sequence;
    context.table = work.table;
    context.kv_head = work.kv_head;
    context.row_begin = work.row_begin;
    context.row_end = work.row_end;
    context.keys = work.keys;
    context.splits = work.splits;
    const i64 before = work.sequence.reach.before;
    context.reach_before = static_cast<i32>(before < abi::kMaxKeys ? before : abi::kMaxKeys);
    const abi::Cache& cache = work.args.cache;
    context.cache.key = plane_of_head(cache.key, work.kv_head);
    context.cache.value = plane_of_head(cache.value, work.kv_head);
    if constexpr (kQuantised) {
        context.cache.key_scale = plane_of_head(cache.key_scale, work.kv_head);
        context.cache.value_scale = plane_of_head(cache.value_scale, work.kv_head);
    }
}

template <class Context>
KVJIT_INLINE AttendWork saved_work(const Context& context, const abi::AttendArgs& args) {
    return {args,         context.sequence, context.table, context.kv_head, context.row_begin, context.row_end,
            context.keys, context.splits};
}

/// The lane's two rows of a matrix: the block's rows r and r + 8.
template <class Context>
KVJIT_INLINE TileRows rows_from(const Context& context, const RowTerms* terms, i32 r) {
    TileRows rows;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if constexpr (kRowTerms) rows.terms[h] = terms[r + 8 * h];
        rows.seen[h] = {0, context.seen_end[r + 8 * h]};
        if constexpr (kWindow) rows.seen[h].begin = rows.terms[h].position - context.reach_before;
    }
    return rows;
}

// ---- Queries: to(row, byte) is where 16 bytes of a row of kBytes bytes lie ------------------------------------------

/// f(row, byte) for the thread's 16 bytes each of the block's query rows.
template <int kRows, int kBytes, int kThreads, class F>
KVJIT_INLINE void for_each_query_part(F&& f) {
#pragma unroll 1
    for (i32 at = opaque(thread_index()); at < kRows * (kBytes / 16); at += kThreads)
        f(at / (kBytes / 16), at % (kBytes / 16) * 16);
}

/// Issues copies of the block's query rows; zeros for rows that don't exist, and past the last element.
template <int kRows, int kBytes, int kThreads, class To>
KVJIT_INLINE void copy_query_rows(const AttendWork& work, To&& to) {
    for_each_query_part<kRows, kBytes, kThreads>([&](i32 r, i32 byte) {
        const i64 row = work.row_begin + r;
        copy_async<16>(to(r, byte), reinterpret_cast<const char*>(query_row(work, row)) + byte,
                       row < work.row_end && byte < 2 * kHeadDim);
    });
}

/// Gives the queries that the thread has copied the sign of the scale, once they have arrived.
template <int kRows, int kBytes, int kThreads, class To>
KVJIT_INLINE void sign_query_rows(u32 sign, To&& to) {
    if (sign == 0) return;
    for_each_query_part<kRows, kBytes, kThreads>([&](i32 r, i32 byte) {
        u32 words[4];
        load16(words, to(r, byte));
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] ^= sign;
        store16(to(r, byte), words);
    });
}

}  // namespace kvjit
