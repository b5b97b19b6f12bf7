// A plan: one step's batch, checked and split, ready to run on every layer.
#pragma once

#include <memory>
#include <string>

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
    /// See kvjit_relayout_run. Allocates nothing unless it fails.
    virtual gen::Result<void> relayout(const kvjit_tensors& from, std::int64_t from_layer, const kvjit_tensors& to,
                                       std::int64_t to_layer) = 0;
    /// See kvjit_plan_synchronize.
    virtual gen::Result<void> synchronize() = 0;
    virtual std::size_t workspace_bytes() const = 0;
    virtual std::string describe() const = 0;
};

}  // namespace kvjit::rt
