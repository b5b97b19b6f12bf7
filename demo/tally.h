// What the steps took, and what that is worth.
#pragma once

#include <cstdint>

#include "machine.h"
#include "model.h"

namespace demo {

/// Sums over steps of one kind.
struct Tally {
    std::int64_t steps = 0;
    std::int64_t decoded = 0;    // tokens
    std::int64_t prefilled = 0;  // tokens
    double plan_seconds = 0;
    double run_seconds = 0;         // all layers
    double bytes = 0;               // of keys, values and scales, each sequence's once
    double prefill_operations = 0;  // multiplications and additions of prefilling sequences

    double seconds() const { return plan_seconds + run_seconds; }
    void add(const RaggedBatch& batch, std::int64_t layers);
};

/// Prints the summary.
void print_tallies(const Tally& decode_only, const Tally& mixed, std::int64_t layers, const Yardstick& yardstick);

}  // namespace demo
