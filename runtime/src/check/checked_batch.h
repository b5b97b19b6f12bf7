// A batch as the rules of common/batch_rules.h see it, for the host's checks and the device's.
#pragma once

#include "common/batch_rules.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// Where each sequence's row of slots begins.
abi::Table table_of(const gen::KernelSpec& spec, const kvjit_batch& batch);

Paging paging_of(const gen::KernelSpec& spec);

/// Reads no array. The batch has passed check_batch_scalars and has a sequence.
abi::CheckedBatch checked_batch(const gen::KernelSpec& spec, const kvjit_batch& batch, bool stores);

}  // namespace kvjit::rt
