// The check kernel as a plan sees it: its arguments, and its findings as errors.
#pragma once

#include "batch/batch_view.h"
#include "common/abi.h"

namespace kvjit::rt {

/// The arguments without fault and blocks. `level` is above KVJIT_CHECK_NONE.
abi::CudaCheckArgs bind_check(const BatchView& batch, const kvjit_tensors& tensors, kvjit_check_level level);

/// Op Merge: the rows that all its tensors have. No kernel checks them, and none reads past them.
std::int64_t merged_rows(const kvjit_tensors& tensors);

/// The error that check_batch would give; for tensors with too few rows, one that names the array. Precondition:
/// fault.count is not 0.
gen::Error fault_error(const abi::Fault& fault, const BatchView& batch);

}  // namespace kvjit::rt
