// A batch as the rules of common/batch_rules.h see it, for the host's checks and the device's.
#pragma once

#include "call/batch_view.h"

namespace kvjit::rt {

/// Reads no array. The batch has a sequence.
abi::CheckedBatch checked_batch(const BatchView& view);

}  // namespace kvjit::rt
