// A chunk's partial result: stored, or merged into the running one; and the output.
#pragma once

#include "common/abi.h"
#include "common/score.h"
#include "cpu/attend/partial.h"

namespace kvjit {

/// The partial result of one chunk for one (token, query head), as partial.h defines it. acc: kHeadDim floats.
struct Part {
    const float* acc;
    float max, sum;
};

/// Address of chunk c's partial of (new token i, query head).
KVJIT_INLINE float* partial_at(const abi::AttendArgs& args, const abi::AttendItem& item, i64 c, i64 i, i64 head) {
    const i64 rows = item.row_end - item.row_begin;
    const i64 heads = (item.head_end - item.head_begin) * kGroup;
    const i64 at = ((c - item.chunk_begin) * rows + i - item.row_begin) * heads + head - item.head_begin * kGroup;
    return args.partials + item.partial + at * (kHeadDim + abi::kPartialTail);
}

// ---- Merge: the same arithmetic as the merge program's --------------------------------------------------------------

/// Stores chunk c's part in the workspace, or merges it into the running result.
KVJIT_INLINE void emit_part(const abi::AttendArgs& args, const abi::AttendItem& item, i64 c, i64 i, i64 head, Part part,
                            float* acc, Running& running) {
    if (item.partial < 0) return admit_row(acc, running, part.acc, part.max, part.sum);
    float* to = partial_at(args, item, c, i, head);
    to[kHeadDim] = part.max;
    to[kHeadDim + 1] = part.sum;
    if (is_empty_part(part.max)) return;
    for_each_vector_rolled<kHeadDim>([&]<int N>(int d) { store<N>(to + d, load<N>(part.acc + d)); });
}

// ---- Output --------------------------------------------------------------------------------------------------------

KVJIT_INLINE void write_output(const abi::AttendArgs& args, const CallSequence& sequence, i64 i, i64 head,
                               const float* acc, const Running& running) {
    const i64 row = sequence.query_begin + i;
    char* out = args.output.base + row * args.output.token_stride + head * args.output.head_stride;
    finish_row(reinterpret_cast<T1*>(out), acc, add_sink(running, args.score.sinks, head));
    if (args.lse) args.lse[row * args.lse_token_stride + head * args.lse_head_stride] = finish_lse(running);
}

}  // namespace kvjit
