// Plans of CUDA targets: which kernels a call launches, on which grids.
#pragma once

#include <memory>

#include "cuda/device.h"
#include "kernel.h"
#include "plan.h"
#include "relayout/sides.h"

namespace kvjit::rt {

/// See kvjit_plan_create. `device` outlives the plan.
gen::Result<std::unique_ptr<Plan>> make_cuda_plan(Device& device, KernelPtr kernel, const kvjit_batch& batch,
                                                  const kvjit_plan_options& options);
/// See kvjit_relayout_plan_create.
gen::Result<std::unique_ptr<Plan>> make_cuda_plan(Device& device, KernelPtr kernel, const RelayoutRequest& request,
                                                  const kvjit_plan_options& options);

}  // namespace kvjit::rt
