// A relayout's tokens as runs that lie behind one table entry on either side, and those entries.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/abi.h"
#include "relayout/sides.h"

namespace kvjit::rt {

/// Entries of the runs on one side: of each layer, where layers have tables of their own, else of all.
struct RunEntries {
    std::vector<std::int64_t> codes;   // (layers, runs)
    std::vector<std::int64_t> scales;  // the same of scale blocks at addresses; else empty
    std::int64_t layers = 1;
};

struct RelayoutRuns {
    std::vector<abi::TokenRun> runs;
    RunEntries from, to;
    std::int64_t tokens = 0;
};

/// Tokens of a run, `most` at most. The view is checked.
RelayoutRuns relayout_runs(const RelayoutView& view, std::int64_t most);

/// A slot of `from` that is one of `to`'s, too.
struct SharedSlot {
    std::int64_t from_sequence, to_sequence;
    std::int64_t token;
    std::int64_t block;  // number or address; 0 where entries are tokens
};
/// One for each layer, where layers lie apart in the cache and have tables of their own; else one for all. By their
/// numbers or addresses; none where tables of the two sides don't count the same.
std::vector<std::optional<SharedSlot>> shared_slots(const RelayoutView& view);
/// A slot of `to` to which tables of two layers send tokens, where the cache has no axis L to keep them apart. The
/// sequences are those of the two.
std::optional<SharedSlot> slot_of_two_layers(const RelayoutView& view);
/// Blocks of which one reaches into the other. `one_cache`: the same address means the same block.
std::optional<SharedSlot> overlapping_block(const RelayoutView& view, bool one_cache);

}  // namespace kvjit::rt
