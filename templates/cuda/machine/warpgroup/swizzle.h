// Where elements of a matrix of cuda/machine/warpgroup/contract.h lie.
#pragma once

#include "common/types.h"

namespace kvjit {

inline constexpr int kStripeBytes = 128;       // of a row
inline constexpr int kStripeAlignment = 1024;  // 8 rows, after which swizzling repeats

/// The place in its stripe of 16 bytes that begin at byte `byte` of row `row`, a multiple of 16.
KVJIT_INLINE i32 swizzled_byte(i32 row, i32 byte) {
    return row * kStripeBytes + (byte ^ row % 8 * 16);
}

}  // namespace kvjit
