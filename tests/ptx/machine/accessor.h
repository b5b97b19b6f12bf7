// Who accesses memory, and between which barriers.
#pragma once

#include <string>

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

/// Who accesses memory, and when: as far as a lane's program and the barriers that it has met tell.
struct Accessor {
    static constexpr u8 kNobody = 0xfe, kMany = 0xff;

    u8 warp = kNobody;      // kMany: several
    u8 lane = 0;            // kMany: several of the warp
    u16 barriers = 0;       // of the block
    u32 warp_barriers = 0;  // of the warp

    /// Whether the two are of different lanes, and no barrier that both have met lies between them.
    bool conflicts(const Accessor& by) const {
        if (warp == kNobody || barriers != by.barriers) return false;
        return warp != by.warp || (warp_barriers == by.warp_barriers && lane != by.lane);
    }
    /// "warp 1, lane 3"
    std::string name() const {
        if (warp == kMany) return "several warps";
        return "warp " + std::to_string(warp) + (lane == kMany ? "" : ", lane " + std::to_string(lane));
    }
};

}  // namespace kvjit::ptx
