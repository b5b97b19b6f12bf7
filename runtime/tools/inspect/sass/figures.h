// What is measured of machine code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/sass/lines.h"
#include "inspect/sass/pipes.h"

namespace kvjit::tool::sass {

struct CodeFigures {
    PipeCounts pipes;
    int access_bytes = 0;  // of the widest load, store or copy of global memory, of a lane
    std::string product;   // the shape of tensor cores' products: "m16n8k16", "m64n128k16"; "": there are none
    int spills = 0;        // loads and stores of local memory
};

/// Of one tile of keys of a warp, beside its instructions.
struct TileFigures {
    int keys;
    int rows;                     // of queries, which exist
    std::int64_t shared_cycles;   // of shared memory, 128 bytes each
    std::int64_t flight_bytes;    // of copies that are on their way when the loop waits for some of them
    int copies;                   // loads whose value is stored to shared memory: copies not in the background
    int trips;                    // waits for a load in the same tile
    std::int64_t cache_bytes;     // that the tile's keys and values have
    std::int64_t operations;      // floating-point operations that its rows need
    std::int64_t group_products;  // m16n8k16 that instructions of warpgroups do for the warp
    std::int64_t alone;           // instructions that it issues while none of its warpgroup's products is under way
};

struct HotLoop {
    std::int64_t address;             // of its first instruction
    CodeFigures code;                 // a tile's where there is one; else as it stands there
    std::optional<TileFigures> tile;  // of attention
    std::vector<LineCount> lines;     // that a tile's instructions are from, where the code knows its lines
};

}  // namespace kvjit::tool::sass
