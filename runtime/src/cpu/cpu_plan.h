// Plans of CPU targets.
#pragma once

#include <memory>

#include "kernel.h"
#include "plan.h"
#include "relayout/sides.h"

namespace kvjit::rt {

/// See kvjit_plan_create.
gen::Result<std::unique_ptr<Plan>> make_cpu_plan(KernelPtr kernel, const kvjit_batch& batch,
                                                 const kvjit_plan_options& options);
/// See kvjit_relayout_plan_create.
gen::Result<std::unique_ptr<Plan>> make_cpu_plan(KernelPtr kernel, const RelayoutRequest& request,
                                                 const kvjit_plan_options& options);

}  // namespace kvjit::rt
