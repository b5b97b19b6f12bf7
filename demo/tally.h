// What the steps took, and what that is worth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine.h"
#include "model.h"

namespace demo {

/// One program of a step on one layer, timed apart from the others.
struct Timing {
    double seconds;
    double work;               // bytes, or floating-point operations
    double limit;              // what the machine does of them in a second at most, measured next to it; 0: not known
    double plain_seconds = 0;  // the same by plain loops; 0: they were not run
    double peer_seconds = 0;   // and by the peer
};

using Timings = std::vector<Timing>;

/// Sums over steps of one kind, and their times.
struct Tally {
    std::int64_t steps = 0;
    std::int64_t decoded = 0, prefilled = 0;  // tokens
    std::vector<double> plan_seconds;
    std::vector<double> run_seconds;  // all layers
    Timings store, decode, prefill;   // of some of the steps

    void add(const RaggedBatch& batch, double planning, double running);
};

/// How much of the model the figures are about, and what they are held against.
struct Scope {
    std::int64_t layers;
    std::string limits;  // a sentence about them
    bool beside_others;  // plain loops, and the peer if there is one
    std::string peer;    // its name
};

/// Prints the steps' times, and where they go.
void print_tallies(const Tally& decode_only, const Tally& mixed, const Scope& scope);

}  // namespace demo
