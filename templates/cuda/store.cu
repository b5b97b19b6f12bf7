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

KVJIT_INLINE void store_slot(const abi::Cache& cache, const TokenPlace& place, const Slot& slot, const char* from) {
    const abi::Plane& to = place.value ? cache.value : cache.key;
    T3* scales = nullptr;
    if constexpr (kQuantised) {
        const abi::Plane& scale = place.value ? cache.value_scale : cache.key_scale;
        scales = reinterpret_cast<T3*>(slot_address(scale, slot.entry.scales(), slot.token, place.head));
    }
    encode_row(slot_address(to, slot.entry.codes, slot.token, place.head), scales, from);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_store(KVJIT_PARAM(kvjit::abi::CudaStoreArgs) args) {
    using namespace kvjit;
    store_row(args, [&](const TokenPlace& place, const Slot& slot, const char* from) {
        store_slot(args.store.cache, place, slot, from);
    });
}
