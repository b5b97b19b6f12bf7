// Which row of the cache a warp of store or load works on.
#pragma once

#include "common/abi.h"
#include "common/slots.h"
#include "common/types.h"
#include "cuda/cache/row_lanes.h"

namespace kvjit {

// ---- Work split: a warp for each (token, kv head, key or value) ----------------------------------------------------

struct TokenPlace {
    i64 row;  // of the packed tensor of the call
    i64 head;
    bool value;
};

KVJIT_INLINE TokenPlace place_of_warp(const abi::Launch& launch) {
    const i64 index = block_x() * kTokenWarps + warp_index();
    const u64 rest = static_cast<u64>(index / 2), heads = static_cast<u64>(launch.num_kv_heads);
    // Division is much cheaper in 32 bits, which nearly always suffice.
    const u64 row = rest >> 32 == 0 ? static_cast<u32>(rest) / static_cast<u32>(heads) : rest / heads;
    return {static_cast<i64>(row), static_cast<i64>(rest - row * heads), index % 2 != 0};
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
