// What `kvjit bench` runs: a call over the layers of a cache, made up or recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/batch_text.h"
#include "handles.h"
#include "recording/recording.h"
#include "replay_call.h"

namespace kvjit::tool {

class Workload {
public:
    virtual ~Workload() = default;
    /// The spec's canonical text, and the batch's: that of --batch, or the recording's file.
    std::string spec, batch;
    std::int64_t new_tokens = 0;
    std::int64_t layers = 1;  // that a pass runs on, one after the other

    /// Runs the call on a layer.
    virtual Result<void> run(std::int64_t layer) = 0;
};

/// How a made-up call is laid out.
struct WorkloadShape {
    std::int64_t kv_heads, layers;  // 0 layers: as many as the last-level cache can't keep
    double bytes_beyond_cache;
};

/// Errors: kvjit refuses the call, or memory doesn't suffice. The machine outlives the workload.
Result<std::unique_ptr<Workload>> made_up_workload(const Machine& machine, const kvjit_spec& spec,
                                                   const std::string& batch, const WorkloadShape& shape);

/// A recorded call, as it was: one layer. Errors: kvjit refuses it. The machine outlives the workload.
Result<std::unique_ptr<Workload>> recorded_workload(const Machine& machine, const std::string& file);

}  // namespace kvjit::tool
