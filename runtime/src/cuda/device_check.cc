#include "cuda/device_check.h"

#include <algorithm>

#include "check/check_batch.h"
#include "check/checked_batch.h"
#include "check/rule_text.h"

namespace kvjit::rt {
namespace {

/// The least number of rows of these tensors; absent ones don't count.
std::int64_t least_rows(std::initializer_list<const kvjit_tensor*> tensors) {
    std::int64_t rows = abi::kNoLimit;
    for (const kvjit_tensor* tensor : tensors) {
        if (tensor->rank != 0) rows = std::min(rows, tensor->shape[0]);
    }
    return rows;
}

std::int64_t key_rows_of(const kvjit_tensors& tensors) {
    const kvjit_tensor& mask = tensors.attn_mask;
    const std::int64_t rows = least_rows({&tensors.key, &tensors.value});
    return mask.rank != 0 ? std::min(rows, mask.shape[mask.rank - 1]) : rows;
}

std::int64_t query_rows_of(const kvjit_tensors& tensors) {
    const kvjit_tensor& mask = tensors.attn_mask;
    const std::int64_t rows =
        least_rows({&tensors.query, &tensors.current_key, &tensors.current_value, &tensors.attn_output, &tensors.lse});
    return mask.rank != 0 ? std::min(rows, mask.shape[mask.rank - 2]) : rows;
}

}  // namespace

std::int64_t merged_rows(const kvjit_tensors& tensors) {
    const std::int64_t parts = std::min(tensors.partial_output.shape[1], tensors.partial_lse.shape[1]);
    return std::min(parts, least_rows({&tensors.attn_output, &tensors.lse}));
}

abi::CudaCheckArgs bind_check(const BatchView& batch, const kvjit_tensors& tensors, kvjit_check_level level) {
    return {.batch = checked_batch(batch, kCudaAlignment),
            .query_rows = query_rows_of(tensors),
            .key_rows = key_rows_of(tensors),
            .entries = level == KVJIT_CHECK_FULL,
            .blocks = 0,
            .fault = nullptr};
}

gen::Error fault_error(const abi::Fault& fault, const BatchView& batch) {
    return rule_error(fault.found, rule_words(batch).of(fault.found.layer),
                      " (found on the device, nothing was written since)");
}

}  // namespace kvjit::rt
