// How often each instruction runs for a tile of an attention program.
//
// The loop over tiles is the innermost one that copies rows to shared memory (LDGSTS) and has most of the products
// (tensor cores', else float32's), those of loops inside it included. A turn of it is a tile of keys; where keys and
// values are multiplied on two ways through it, two turns are.
//
// A branch in it may leave out what most tiles don't need: masks at the end of the keys, the rescaling of sums whose
// largest score hasn't changed. So the way that counts is that of the fewest instructions among those that do all of
// the work: products, copies, stores. A loop inside it counts as often as it turns, by the constants that its counter
// is compared with and grows by, or by the copies or products that the tile needs.
#pragma once

#include <cstdint>
#include <vector>

#include "inspect/sass/code.h"
#include "inspect/sass/loops.h"
#include "inspect/sass/pipes.h"
#include "inspect/sass/tile.h"
#include "result.h"

namespace kvjit::tool::sass {

/// An instruction of the code, and how often a warp runs it for a tile.
struct Counted {
    const Instruction* instruction;
    std::int64_t times;
};

/// The loop over tiles, by its place in `loops`. Errors: there is none.
Result<std::size_t> find_tile_loop(const Code& code, const std::vector<Loop>& loops, Product product);

/// In the order of the code's way through the loop `place`. Errors: what these rules don't understand.
Result<std::vector<Counted>> count_tile(const Code& code, const std::vector<Loop>& loops, std::size_t place,
                                        Product product, const Tile& tile);

}  // namespace kvjit::tool::sass
