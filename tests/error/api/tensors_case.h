// Legal tensors for a BatchCase, to be spoiled in one place at a time. Their memory is never read.
#pragma once

#include "batch_case.h"
#include "kvjit/kvjit.h"

namespace kvjit::test {

struct TensorsCase : BatchCase {
    kvjit_tensors tensors;
    std::int64_t layer_idx = 1;

    /// Every tensor that the spec's operator takes, the optional ones included; contiguous, exactly as large as needed.
    explicit TensorsCase(std::string_view spec_text);

    /// A contiguous tensor on an address of its own.
    kvjit_tensor tensor(std::int32_t dtype, std::vector<std::int64_t> shape);

private:
    void add_cache();
    void add_attention();
    std::int64_t made_ = 0;
};

}  // namespace kvjit::test
