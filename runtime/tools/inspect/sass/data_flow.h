// What a warp waits for, and what is on its way meanwhile.
#pragma once

#include <cstdint>
#include <span>

#include "inspect/sass/code.h"
#include "inspect/sass/tile_loop.h"

namespace kvjit::tool::sass {

struct Loads {
    int copies = 0;  // loads from global memory whose value is stored to shared memory: copies not in the background
    int trips = 0;   // waits for a load's value, of which one may be for several loads
};

/// Of instructions in the order in which they run.
Loads find_loads(std::span<const Counted> code);

/// Bytes of copies that are on their way just before a wait: those of the groups that it may leave pending, and those
/// issued since the wait before. 0: there is no copy in the background.
std::int64_t bytes_in_flight(std::span<const Counted> code);

}  // namespace kvjit::tool::sass
