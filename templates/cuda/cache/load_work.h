// Which rows each warp of load reads, and where it writes them. The entry file's `load` does both.
#pragma once

#include "common/abi.h"
#include "common/slots.h"
#include "common/types.h"
#include "cuda/cache/token_work.h"

namespace kvjit {

// ---- Work split: warps for each (position, key or value), which divide its kv heads --------------------------------

/// Where rows of T1 are written, each `repeat` times, `stride` bytes apart.
struct LoadedRows {
    HeadRows rows;
    i64 stride, repeat;
};

/// Calls load(place, slot, to) for the warp's heads.
template <class Load>
KVJIT_INLINE void load_rows(const abi::CudaLoadArgs& args, Load&& load) {
    const TokenPlace place = place_of_warp(args.launch, args.split);
    const abi::Rows& to = place.value ? args.load.value : args.load.key;
    const abi::Indices& kvstarts = args.load.keys.starts;
    const i64 sequences = args.launch.batch_size;
    if (is_faulty(args.launch) || !to.base || place.row >= index_at(kvstarts, sequences)) return;
    const i64 b = find_sequence(sequences, place.row, [&](i64 s) { return index_at(kvstarts, s); });
    const Slot slot = slot_of(args.load.table, b, place.row - index_at(kvstarts, b));
    const i64 repeat = args.load.num_repeat, stride = repeat * to.head_stride;
    char* first = to.base + place.row * to.token_stride + place.head_begin * stride;
    load(place, slot, LoadedRows{{first, stride}, to.head_stride, repeat});
}

}  // namespace kvjit
