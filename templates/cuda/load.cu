// load: positions of the cache are read back, dequantised, converted or moved, each head num_repeat times
// (docs/semantics.md, sections 2, 5 and 6).
#include "common/abi.h"
#include "common/shape.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/row_codec.h"
#include "cuda/token_rows.h"

namespace kvjit {

// ---- 2. Work split: a warp for each (position, kv head, key or value) ----------------------------------------------

KVJIT_INLINE void load_row(const abi::CudaLoadArgs& args) {
    const TokenPlace place = place_of_warp(args.launch);
    const abi::Rows& to = place.value ? args.load.value : args.load.key;
    const abi::Indices& kvstarts = args.load.keys.starts;
    const i64 sequences = args.launch.batch_size;
    if (is_faulty(args.launch) || !to.base || place.row >= index_at(kvstarts, sequences)) return;
    const i64 b = find_sequence(sequences, place.row, [&](i64 s) { return index_at(kvstarts, s); });
    const Slot slot = slot_of(args.load.table, b, place.row - index_at(kvstarts, b));

    const abi::Cache& cache = args.load.cache;
    const abi::Plane& from = place.value ? cache.value : cache.key;
    const char* scales = nullptr;
    if constexpr (kQuantised) {
        const abi::Plane& scale = place.value ? cache.value_scale : cache.key_scale;
        scales = slot_address(scale, slot.entry.scales(), slot.token, place.head);
    }
    const i64 repeat = args.load.num_repeat;
    char* first = to.base + place.row * to.token_stride + place.head * repeat * to.head_stride;
    decode_row(first, to.head_stride, repeat, slot_address(from, slot.entry.codes, slot.token, place.head), scales);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_load(KVJIT_PARAM(kvjit::abi::CudaLoadArgs) args) {
    kvjit::load_row(args);
}
