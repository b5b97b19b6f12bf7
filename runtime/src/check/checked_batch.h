// A batch as the rules of common/batch_rules.h see it, for the host's checks and the device's.
#pragma once

#include "batch/batch_view.h"

namespace kvjit::rt {

/// Precondition: the batch has a sequence. Reads no array. `alignment`: BatchUse's.
abi::CheckedBatch checked_batch(const BatchView& view, std::int64_t alignment);

}  // namespace kvjit::rt
