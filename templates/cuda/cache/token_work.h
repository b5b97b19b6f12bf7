// Which rows of the cache a warp of store or load works on.
#pragma once

#include "common/abi.h"
#include "common/slots.h"
#include "common/types.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- Work split: warps for each (token, key or value), which divide its kv heads -----------------------------------

inline constexpr LaunchShape kRowShape = row_shape(kHeadDim);

struct TokenPlace {
    i64 row;  // of the packed tensor of the call
    i32 head_begin, head_end;
    bool value;
};

KVJIT_INLINE TokenPlace place_of_warp(const abi::Launch& launch, const abi::HeadSplit& split) {
    const i64 index = block_x() * kTokenWarps + warp_index();
    const u64 rest = static_cast<u64>(index / 2), warps = static_cast<u64>(split.warps);
    // Division is much cheaper in 32 bits, which nearly always suffice. There are fewer than 2^31 heads.
    const u64 row = rest >> 32 == 0 ? static_cast<u32>(rest) / static_cast<u32>(warps) : rest / warps;
    const u32 begin = static_cast<u32>(rest - row * warps) * static_cast<u32>(split.heads_of_warp);
    const u32 end = begin + static_cast<u32>(split.heads_of_warp), heads = static_cast<u32>(launch.num_kv_heads);
    return {static_cast<i64>(row), static_cast<i32>(begin), static_cast<i32>(end < heads ? end : heads),
            index % 2 != 0};
}

/// Rows of the warp's heads, from one to the next: an address made of a head's number takes many more instructions.
struct HeadRows {
    char* row;
    i64 stride;

    KVJIT_INLINE char* next() {
        char* now = row;
        row += stride;
        return now;
    }
};

/// Those of a slot in one of the cache's planes.
KVJIT_INLINE HeadRows slot_rows(const abi::Plane& plane, i64 entry, i64 token, const TokenPlace& place) {
    return {slot_address(plane, entry, token, place.head_begin), plane.head_stride};
}

template <class F>
KVJIT_INLINE void for_each_head(const TokenPlace& place, F&& f) {
#pragma unroll 1
    for (i32 head = place.head_begin; head < place.head_end; ++head) f();
}

KVJIT_INLINE Slot slot_of(const abi::Table& table, i64 b, i64 position) {
    return {page_entry(table_row(table, b), position), token_in_page(position)};
}

KVJIT_INLINE bool is_inside(const abi::Launch& launch, const Slot& slot) {
    const i64 number = slot.entry.codes + slot.token * launch.slots_of_token;
    if (slot.token >= launch.block_tokens || (kScaleTable && slot.entry.scales() < launch.first_slot)) return false;
    return number >= launch.first_slot && number < launch.num_slots;
}

}  // namespace kvjit
