// Copies of cache rows to shared memory, for dot products and tensor cores.
#pragma once

#include "common/types.h"
#include "cuda/machine/contract.h"

namespace kvjit {

/// The address that lane `source` has. The warp calls it together.
KVJIT_INLINE const char* shuffle_address(const char* address, i32 source) {
    const u64 bits = reinterpret_cast<u64>(address);
    const u64 low = shuffle(static_cast<u32>(bits), source), high = shuffle(static_cast<u32>(bits >> 32), source);
    return reinterpret_cast<const char*>(high << 32 | low);
}

/// Copies kBytes, or writes zeros where not `valid`. In the background unless rows are aligned to 2 bytes only, which
/// copy_async doesn't take.
template <int kBytes>
KVJIT_INLINE void copy_bytes(char* to, const char* from, bool valid) {
    if constexpr (kBytes >= 4)
        copy_async<kBytes>(to, from, valid);
    else
        *reinterpret_cast<u16*>(to) = valid ? *reinterpret_cast<const u16*>(from) : u16{0};
}

}  // namespace kvjit
