// The check kernel as a plan sees it: its arguments, and what it found as an error.
#pragma once

#include "call/batch_view.h"
#include "common/abi.h"

namespace kvjit::rt {

/// Arguments but for fault and blocks. `level` is above KVJIT_CHECK_NONE.
abi::CudaCheckArgs bind_check(const BatchView& batch, const kvjit_tensors& tensors, kvjit_check_level level);

/// The same error that check_batch would give; of tensors with too few rows, one that names the array. `fault.count` is
/// not 0.
/// Of Merge: the rows that all its tensors have. No kernel checks them, and none goes behind.
std::int64_t merged_rows(const kvjit_tensors& tensors);

gen::Error fault_error(const abi::Fault& fault, const BatchView& batch);

}  // namespace kvjit::rt
