// That a relayout writes nothing that it reads.
#pragma once

#include <optional>
#include <vector>

#include "relayout/runs.h"

namespace kvjit::rt {

/// What a plan knows of that before it sees a tensor.
class Apart {
public:
    explicit Apart(const RelayoutView& view) : view_(view), shared_(shared_slots(view)) {}

    /// Blocks at addresses of their own; layers that one plane holds. Errors: KVJIT_BAD_INDEX.
    gen::Result<void> check_tables() const;
    /// The tensors of a run; they have been checked. Errors: KVJIT_BAD_ARGUMENT. O(runs) where one side has blocks at
    /// addresses and the other tensors, else O(layers).
    gen::Result<void> check_run(const RelayoutRuns& runs, const kvjit_tensors& from, std::int64_t from_layer,
                                const kvjit_tensors& to, std::int64_t to_layer) const;

private:
    gen::Result<void> check_blocks() const;
    gen::Result<void> check_layers() const;
    gen::Result<void> check_one_cache(std::int64_t from_layer, std::int64_t to_layer) const;

    const RelayoutView& view_;
    std::vector<std::optional<SharedSlot>> shared_;
};

}  // namespace kvjit::rt
