// A plan: one step's batch, checked and split, ready to run on every layer.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "call/run_work.h"
#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

class Kernel;
using KernelPtr = std::shared_ptr<Kernel>;

/// Run by one thread at a time. Each kind of target has its own implementation.
class Plan {
public:
    virtual ~Plan() = default;
    /// See kvjit_run. Allocates nothing unless it fails.
    virtual gen::Result<void> run(const kvjit_tensors& tensors, std::int64_t layer_idx) = 0;
    /// Refuses what run would refuse before it writes anything; writes nothing.
    virtual gen::Result<void> check(const kvjit_tensors& tensors, std::int64_t layer_idx) = 0;
    /// The programs that a run may launch, as bits of kvjit_programs.
    virtual std::uint32_t programs() const = 0;
    /// What a run moves and computes. `host`: the plan's batch with arrays in host memory; null: they are the device's,
    /// and what depends on lengths is 0.
    virtual RunWork work(const kvjit_batch* host) const = 0;
    /// Whether runs now go into a graph, so that nothing may wait for them.
    virtual bool is_captured() { return false; }
    /// Copies memory of a run's tensors or of the batch's arrays, once earlier runs are done.
    virtual gen::Result<void> download(void* to, const void* from, std::size_t bytes) {
        if (bytes != 0) std::memcpy(to, from, bytes);
        return {};
    }
    /// See kvjit_relayout_run. Allocates nothing unless it fails.
    virtual gen::Result<void> relayout(const kvjit_tensors& from, std::int64_t from_layer, const kvjit_tensors& to,
                                       std::int64_t to_layer) = 0;
    /// See kvjit_plan_synchronize.
    virtual gen::Result<void> synchronize() = 0;
    virtual std::size_t workspace_bytes() const = 0;
    virtual std::string describe() const = 0;
};

}  // namespace kvjit::rt
