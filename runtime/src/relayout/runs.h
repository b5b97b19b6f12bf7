// A relayout's tokens as runs, each within one table entry on either side, and those entries.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/abi.h"
#include "relayout/sides.h"

namespace kvjit::rt {

/// The runs' entries on one side: for each layer, if layers have tables of their own, else for all.
struct RunEntries {
    std::vector<std::int64_t> codes;   // (layers, runs)
    std::vector<std::int64_t> scales;  // the same for scale blocks at addresses; else empty
    std::int64_t layers = 1;
};

struct RelayoutRuns {
    std::vector<abi::TokenRun> runs;
    RunEntries from, to;
    std::int64_t tokens = 0;
};

/// Divides the tokens into runs of at most `most`. Precondition: the view is checked.
RelayoutRuns relayout_runs(const RelayoutView& view, std::int64_t most);

/// A slot of `from` that `to` has, too.
struct SharedSlot {
    std::int64_t from_sequence, to_sequence;
    std::int64_t token;
    std::int64_t block;  // number or address; 0 where entries are tokens
};
/// The first shared slot of each layer, if layers have memory and tables of their own; else one for all. Compares
/// numbers or addresses; none if the two sides' tables don't count the same.
std::vector<std::optional<SharedSlot>> shared_slots(const RelayoutView& view);
/// A slot of `to` into which the tables of two layers send tokens, if the cache has no axis L to separate them. The
/// sequences are those of the two.
std::optional<SharedSlot> slot_of_two_layers(const RelayoutView& view);
/// Blocks that overlap. `one_cache`: equal addresses mean equal blocks.
std::optional<SharedSlot> overlapping_block(const RelayoutView& view, bool one_cache);

}  // namespace kvjit::rt
