// store: writes new keys and values to their slots, quantised, converted or copied (docs/semantics.md, sections 2, 5
// and 6).
#include "common/abi.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/cache/row_codec.h"
#include "cpu/cache/store_work.h"

namespace kvjit {

// ---- 2. Work split: cpu/cache/store_work.h -------------------------------------------------------------------------

// ---- 6. Store ------------------------------------------------------------------------------------------------------

/// Keys or values of the call.
struct StoreStream {
    using Encoder = RowEncoder<CacheRow>;

    abi::Rows from;
    abi::Plane to, scale;
};

KVJIT_INLINE void store_slot(StoreStream::Encoder& encoder, const StoreStream& stream, i64 row, const PageEntry& entry,
                             i64 token, i64 head) {
    const char* from = stream.from.base + row * stream.from.token_stride + head * stream.from.head_stride;
    T3* scales = nullptr;
    if constexpr (kQuantised) scales = reinterpret_cast<T3*>(slot_address(stream.scale, entry.scales(), token, head));
    encoder.add(reinterpret_cast<T2*>(slot_address(stream.to, entry.codes, token, head)), scales,
                reinterpret_cast<const T1*>(from));
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_store(const kvjit::abi::StoreArgs* args, const kvjit::abi::TokenItem* item) {
    using kvjit::StoreStream;
    const StoreStream key = {args->key, args->cache.key, args->cache.key_scale};
    const StoreStream value = {args->value, args->cache.value, args->cache.value_scale};
    kvjit::store_item(key, value, *args, *item);
}
