// Where a step's time goes: its programs one at a time, on all layers, each beside the machine's limit and beside other
// ways to do the same.
#pragma once

#include <cstdint>
#include <vector>

#include "call.h"
#include "machine.h"
#include "peer.h"
#include "programs.h"
#include "reference.h"
#include "tally.h"

namespace demo {

class Breakdown {
public:
    /// `new_tokens`: what a step has at most.
    Breakdown(const Options& options, const Kernels& kernels, const Caller& caller, Machine& machine,
              std::int64_t new_tokens);

    /// Repeats what the step has just done, which leaves the cache as it is. On CPUs, plain loops and the peer attend,
    /// too, and kvjit attends on another number of threads, for the checker to compare.
    void measure(const Step& step, const std::vector<LayerCall>& calls, const LayerCall& checked, Tally& tally,
                 Checker& checker);

    /// "" if there is none.
    const std::string& peer() const { return peer_.name(); }

private:
    // Seconds of one layer.
    double time_store(const RaggedBatch& batch, std::vector<LayerCall> calls);
    double time_attention(const RaggedBatch& batch, const std::vector<LayerCall>& calls);
    void time_others(const RaggedBatch& batch, LayerCall call, Timing& timing, Checker& checker);
    void compare_bits(const RaggedBatch& batch, LayerCall checked, Checker& checker);

    const Kernels& kernels_;
    const Caller& caller_;
    Machine& machine_;
    int threads_;
    bool beside_others_;
    Peer peer_;
    Array<Half> output_, other_output_;  // of one layer
};

}  // namespace demo
