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

KVJIT_INLINE void load_slot(const abi::Cache& cache, const TokenPlace& place, const Slot& slot, const LoadedRow& to) {
    const abi::Plane& from = place.value ? cache.value : cache.key;
    const char* scales = nullptr;
    if constexpr (kQuantised) {
        const abi::Plane& scale = place.value ? cache.value_scale : cache.key_scale;
        scales = slot_address(scale, slot.entry.scales(), slot.token, place.head);
    }
    decode_row(to.first, to.stride, to.repeat, slot_address(from, slot.entry.codes, slot.token, place.head), scales);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_load(KVJIT_PARAM(kvjit::abi::CudaLoadArgs) args) {
    using namespace kvjit;
    load_row(args, [&](const TokenPlace& place, const Slot& slot, const LoadedRow& to) {
        load_slot(args.load.cache, place, slot, to);
    });
}
