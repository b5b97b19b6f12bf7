// A batch on the target cuda-emulated, its arrays the "device's": what kvjit_plan_synchronize says.
#pragma once

#include "batch_case.h"
#include "check/check_batch.h"
#include "generator/error.h"

namespace kvjit::test {

/// A plan and one run with tensors that have rows for every batch of these tests. Bounds that CUDA needs and the batch
/// hasn't got are so large that none is broken.
gen::Result<void> run_on_device(const BatchCase& c, const rt::BatchUse& use);

}  // namespace kvjit::test
