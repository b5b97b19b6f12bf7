// From a case to numbers: how many tokens each sequence has, and where in the cache they live.
#pragma once

#include <cstdint>
#include <vector>

#include "call/oracle.h"
#include "conformance/case.h"
#include "support/rng.h"

namespace kvjit::test {

/// seqstarts, kvstarts, start_pos, heads, decoding_batches: everything of a Problem that does not depend on where
/// tokens live. The work (multiplications of the oracle) is kept within bounds by shortening what is new.
Problem shape_problem(const Case& which, Rng& rng);

/// Extents of the axes T and N of a cache, and of its table.
struct Placement {
    std::int64_t max_tokens = 0;  // axis T; with blocks: page_size
    std::int64_t num_blocks = 0;  // axis N; 0 without blocks
    std::vector<std::int64_t> table_shape;
};

/// Chooses a slot for every position, no two on one, in no order, with unused slots between: fills in cachestarts,
/// table_columns, rowstarts and row_index. Entries that no position needs are -1. Where the plan stores nothing,
/// positions of any sequences share slots, and sequences rows.
Placement place_tokens(const Case& which, Problem& problem, Rng& rng);

/// The first key that a new token of sequence b may see; new tokens' own keys are not before it.
std::int64_t first_in_sight(const Problem& problem, std::int64_t b);

/// The table as an engine has it that gives back what has left the window: -1 for entries without a key that some
/// sequence's tokens see.
std::vector<std::int64_t> entries_in_sight(const Problem& problem);

}  // namespace kvjit::test
