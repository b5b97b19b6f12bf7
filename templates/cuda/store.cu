// store: writes new keys and values to their slots, quantised, converted or copied (docs/semantics.md, sections 2, 5
// and 6).
#include "common/abi.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache/row_codec.h"
#include "cuda/cache/store_work.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 2. Work split: cuda/cache/store_work.h ------------------------------------------------------------------------

// ---- 6. Store ------------------------------------------------------------------------------------------------------

KVJIT_INLINE void store_slot(const abi::Cache& cache, const TokenPlace& place, const Slot& slot, HeadRows from) {
    HeadRows to = slot_rows(place.value ? cache.value : cache.key, slot.entry.codes, slot.token, place);
    HeadRows scales = {};
    if constexpr (kQuantised)
        scales = slot_rows(place.value ? cache.value_scale : cache.key_scale, slot.entry.scales(), slot.token, place);
    for_each_head(place, [&] { encode_row(to.next(), reinterpret_cast<T3*>(scales.next()), from.next()); });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kRowShape.threads, kvjit::kRowShape.blocks_per_sm)
kvjit_store(KVJIT_PARAM(kvjit::abi::CudaStoreArgs) args) {
    using namespace kvjit;
    store_rows(args, [&](const TokenPlace& place, const Slot& slot, const HeadRows& from) {
        store_slot(args.store.cache, place, slot, from);
    });
}
