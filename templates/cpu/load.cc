// load: reads positions of the cache back, dequantised, converted or copied, each head num_repeat times
// (docs/semantics.md, sections 2, 5 and 6).
#include "common/abi.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/cache/load_work.h"
#include "cpu/cache/row_codec.h"

namespace kvjit {

// ---- 2. Work split: cpu/cache/load_work.h --------------------------------------------------------------------------

// ---- 6. Store: rows of the call ------------------------------------------------------------------------------------

/// Keys or values of the call.
struct LoadStream {
    abi::Rows to;
    abi::Plane from, scale;
    i64 num_repeat;
};

KVJIT_INLINE void load_slot(const LoadStream& stream, i64 row, const PageEntry& entry, i64 token, i64 head) {
    const i64 stride = stream.to.head_stride;
    char* to = stream.to.base + row * stream.to.token_stride + head * stream.num_repeat * stride;
    const T3* scales = nullptr;
    if constexpr (kQuantised)
        scales = reinterpret_cast<const T3*>(slot_address(stream.scale, entry.scales(), token, head));
    T1* first = reinterpret_cast<T1*>(to);
    decode_row(first, reinterpret_cast<const T2*>(slot_address(stream.from, entry.codes, token, head)), scales);
    for (i64 r = 1; r < stream.num_repeat; ++r) move_row(reinterpret_cast<T1*>(to + r * stride), first);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_load(const kvjit::abi::LoadArgs* args, const kvjit::abi::TokenItem* item) {
    using kvjit::LoadStream;
    const LoadStream key = {args->key, args->cache.key, args->cache.key_scale, args->num_repeat};
    const LoadStream value = {args->value, args->cache.value, args->cache.value_scale, args->num_repeat};
    kvjit::load_item(key, value, *args, *item);
}
