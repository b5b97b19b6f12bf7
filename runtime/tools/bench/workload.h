// What `kvjit bench` runs: a call over the layers of a cache, made up or recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/batch_text.h"
#include "bench/device.h"
#include "handles.h"
#include "recording/recording.h"

namespace kvjit::tool {

class Workload {
public:
    virtual ~Workload() = default;
    /// The spec's canonical text, and the batch's: that of --batch, or the recording's file.
    std::string spec, batch;
    kvjit_dtype t1 = KVJIT_AUTO;
    std::int64_t new_tokens = 0;
    std::int64_t layers = 1;  // that a pass runs on, one after the other

    /// Plans the same calls, over the same tensors, with the kernels of one more engine. Errors: kvjit refuses them.
    virtual Result<void> add_engine(const Machine& machine) = 0;
    /// Runs the call on a layer, with the kernels of the machine's engine (0), or of the one that was added (1); on a
    /// GPU it is under way then.
    virtual Result<void> start(std::int64_t layer, std::size_t engine) = 0;
    /// Waits for all calls. Errors: one of them went wrong.
    virtual Result<void> finish() = 0;
};

/// Where a workload lies and runs. All of it outlives the workload.
struct Setting {
    const Device& device;
    DeviceMemory& memory;
    const Machine& machine;
};

/// How a made-up call is laid out.
struct WorkloadShape {
    std::int64_t kv_heads, layers;  // 0 layers: as many as the last-level cache can't keep
};

/// Errors: kvjit refuses the call, or memory doesn't suffice.
Result<std::unique_ptr<Workload>> made_up_workload(const Setting& setting, const kvjit_spec& spec,
                                                   const std::string& batch, const WorkloadShape& shape);

/// A recorded call, as it was: one layer. Errors: kvjit refuses it. The machine outlives the workload.
Result<std::unique_ptr<Workload>> recorded_workload(const Machine& machine, const std::string& file);

}  // namespace kvjit::tool
