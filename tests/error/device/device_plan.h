// Plans on the emulated device for the calls of error/api.
#pragma once

#include "error/api/batch_misuse.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::test {

inline Kernel device_kernel(const kvjit_spec& spec) {
    static const Engine engine = *Engine::create();
    return *engine.kernel(spec, *Target::cuda_emulated());
}

/// Requires that it is accepted.
inline Plan device_plan(const IndexArrays& arrays, const PlanOptions& options = {}) {
    Result<Plan> plan = device_kernel(arrays.spec).plan(arrays.batch, options);
    REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
    return *std::move(plan);
}

}  // namespace kvjit::test
