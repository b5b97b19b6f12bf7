// Checks that a relayout writes nothing that it reads.
#pragma once

#include <optional>
#include <vector>

#include "relayout/runs.h"

namespace kvjit::rt {

/// The checks that a plan can do before it sees a tensor.
class Apart {
public:
    explicit Apart(const RelayoutView& view) : view_(view), shared_(shared_slots(view)) {}

    /// Checks blocks at addresses of their own, and layers that share one plane. Errors: KVJIT_BAD_INDEX.
    gen::Result<void> check_tables() const;
    /// Checks a run's tensors, which have passed check_tensors. Errors: KVJIT_BAD_ARGUMENT. O(runs) where one side has
    /// blocks at addresses and the other tensors, else O(layers).
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
