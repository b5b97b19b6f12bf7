// Copies of a tile's keys and values by addresses that lie in shared memory, where each of the block's first threads
// stores those of one key ahead of its copies. kKeys: of the tile; kThreads: of the block.
#pragma once

#include "common/slots.h"
#include "cuda/attend/work.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/machine/contract.h"

namespace kvjit {

/// Addresses of a key's rows in the cache.
struct KeyAddresses {
    const char* rows[kQuantised ? 4 : 2];  // key, value, key scale, value scale
};

// ---- Addresses ------------------------------------------------------------------------------------------------------

/// Issues the copy of the table entry of the thread's key to shared memory, if the key is one of the block's. `first`:
/// the tile's first key.
template <int kKeys>
KVJIT_INLINE void issue_key_entry(Index (&entries)[kKeys], const TableRow& table, ShortRange keys, i32 first) {
    const i32 thread = opaque(thread_index()), key = first + thread;
    if (thread < kKeys) copy_async<sizeof(Index)>(&entries[thread], page_entry_at(table.codes, key), keys.holds(key));
}

/// Stores the addresses of the thread's key, from its entry, which must have arrived.
template <int kKeys, class Context>
KVJIT_INLINE void store_key_addresses(KeyAddresses (&addresses)[kKeys], const Index (&entries)[kKeys],
                                      const Context& context, i32 first) {
    const i32 thread = opaque(thread_index()), key = first + thread;
    if (thread >= kKeys) return;
    const abi::Cache& cache = context.cache;
    // The entry of scale blocks is loaded only now: such caches are rare, and shared memory is scarce.
    const PageEntry entry = context.table.complete(entries[thread], key);
    const i64 token = token_in_page(key);
    KeyAddresses& to = addresses[thread];
    to.rows[0] = slot_address(cache.key, entry.codes, token, 0);
    to.rows[1] = slot_address(cache.value, entry.codes, token, 0);
    if constexpr (kQuantised) {
        to.rows[2] = slot_address(cache.key_scale, entry.scales(), token, 0);
        to.rows[3] = slot_address(cache.value_scale, entry.scales(), token, 0);
    }
}

// ---- Rows of keys and values ----------------------------------------------------------------------------------------

/// f(key, byte) for the thread's accesses of kWidth bytes to the first kBytes bytes of a tile's rows, kUnrolled at a
/// time. The block calls it together.
template <int kKeys, int kThreads, int kWidth, int kBytes, int kUnrolled, class F>
KVJIT_INLINE void for_each_access(F&& f) {
    constexpr int kOfRow = kBytes / kWidth, kAll = kKeys * kOfRow;
    const i32 thread = opaque(thread_index());
#pragma unroll kUnrolled
    for (int first = 0; first < kAll; first += kThreads) {
        constexpr bool kSteady = kThreads % kOfRow == 0;  // the thread's place in a row is always the same
        const u32 at = static_cast<u32>(kSteady ? thread : first + thread);
        const i32 key = static_cast<i32>(at / kOfRow) + (kSteady ? first / kOfRow : 0),
                  byte = static_cast<i32>(at % kOfRow) * kWidth;
        if (kAll % kThreads != 0 && key >= kKeys) break;
        f(key, byte);
    }
}

/// Issues copies of a tile's rows of kBytes bytes, KeyAddresses::rows[kWhich], to to(key, byte), of which kFilled bytes
/// are written: zeros for keys outside of `keys`, and past kBytes. Where rows allow it, 8 threads share one, so that
/// each loads an address for several copies.
template <int kKeys, int kThreads, int kWhich, int kBytes, int kFilled, class To>
KVJIT_INLINE void copy_rows(const KeyAddresses* addresses, ShortRange keys, To&& to) {
    constexpr int kWidth = widest_access(kBytes), kSpan = kFilled % (8 * kWidth) == 0 ? 8 * kWidth : kFilled;
    constexpr int kTurns = round_up(kKeys * kSpan / kWidth, kThreads) / kThreads;
    constexpr int kUnrolled = (kTurns <= 4 ? 4 : 2) * kSpan / kFilled;
    for_each_access<kKeys, kThreads, kWidth, kSpan, (kUnrolled < 1 ? 1 : kUnrolled)>([&](i32 key, i32 byte) {
        const char* from = addresses[key].rows[kWhich] + byte;
        const bool valid = keys.holds(key);
#pragma unroll
        for (int part = 0; part < kFilled; part += kSpan)
            copy_async<kWidth>(to(key, byte, part), from + part, valid && byte + part < kBytes);
    });
}

}  // namespace kvjit
