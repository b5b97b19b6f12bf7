// The rows of a tile of prefill.
#pragma once

#include "cpu/machine/simd.h"

namespace kvjit {

/// Rows of a tile: lanes of its lines.
inline constexpr int kTileRows = kVectorBytes == 16 ? 8 : 2 * kLanes;

}  // namespace kvjit
