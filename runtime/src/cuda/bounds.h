// The host's bounds of a batch whose index arrays lie on the device, from which grids are sized.
#pragma once

#include "check/check_batch.h"
#include "check/check_tensors.h"
#include "generator/spec.h"

namespace kvjit::rt {

struct LengthBounds {
    BatchRows rows;           // S and K; 0 without a host mirror
    std::int64_t max_seqlen;  // of any sequence
    std::int64_t max_kvlen;
};

/// Checks `batch`, and `mirror` (null: none), the same batch with arrays in host memory; then finds the bounds. The
/// batch's max_seqlen and max_kvlen count, since lengths may change between runs; where they are 0, the mirror's
/// lengths do. Errors: as check_batch, and KVJIT_BAD_ARGUMENT where an attention call has neither.
gen::Result<LengthBounds> check_device_batch(const gen::KernelSpec& spec, const kvjit_batch& batch,
                                             const kvjit_batch* mirror, const BatchUse& use);

}  // namespace kvjit::rt
