#pragma once

#include <cstdint>

#include "options.h"

namespace demo {

struct Range {
    std::int64_t low, high;  // both included
};

/// The work that the loop makes up; lengths in tokens.
struct Load {
    std::int64_t pages;           // of each layer's cache
    std::int64_t prefill_budget;  // prompt tokens a step
    std::int64_t pool_rows;       // of made-up activations
    int restored;                 // sequences that are there from the start
    Range restored_prompt, restored_output;
    int requests;  // sequences that arrive, in the first half of the steps
    Range request_prompt, request_output;

    /// New tokens that a step has at most.
    std::int64_t step_tokens() const { return prefill_budget + restored + requests; }
};

/// As much as a machine of this kind is worth.
const Load& load_of(Place place);

}  // namespace demo
