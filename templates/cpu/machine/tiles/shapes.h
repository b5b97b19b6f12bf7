// The shapes of AMX's eight tiles (contract.h).
#pragma once

#include "common/types.h"

namespace kvjit {

struct TileShapes {
    u8 rows[8] = {16, 16, 16, 16, 16, 16, 16, 16};
    u8 row_bytes[8] = {64, 64, 64, 64, 64, 64, 64, 64};
};

}  // namespace kvjit
