// load: reads positions of the cache back, dequantised, converted or copied, each head num_repeat times
// (docs/semantics.md, sections 2, 5 and 6).
#include "common/abi.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache/load_work.h"
#include "cuda/cache/row_codec.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 2. Work split: cuda/cache/load_work.h -------------------------------------------------------------------------

// ---- 6. Store: rows of the call ------------------------------------------------------------------------------------

KVJIT_INLINE void load_slot(const abi::Cache& cache, const TokenPlace& place, const Slot& slot, LoadedRows to) {
    HeadRows from = slot_rows(place.value ? cache.value : cache.key, slot.entry.codes, slot.token, place);
    HeadRows scales = {};
    if constexpr (kQuantised)
        scales = slot_rows(place.value ? cache.value_scale : cache.key_scale, slot.entry.scales(), slot.token, place);
    for_each_head(place, [&] { decode_row(to.rows.next(), to.stride, to.repeat, from.next(), scales.next()); });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kRowShape.threads, kvjit::kRowShape.blocks_per_sm)
kvjit_load(KVJIT_PARAM(kvjit::abi::CudaLoadArgs) args) {
    using namespace kvjit;
    load_rows(args, [&](const TokenPlace& place, const Slot& slot, const LoadedRows& to) {
        load_slot(args.load.cache, place, slot, to);
    });
}
