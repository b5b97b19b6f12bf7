// Legal tensors for a BatchCase, to be spoiled in one place at a time.
#pragma once

#include <cstddef>
#include <deque>

#include "batch_case.h"
#include "kvjit/kvjit.h"

namespace kvjit::test {

struct TensorsCase : BatchCase {
    kvjit_tensors tensors;
    std::int64_t layer_idx = 1;
    bool stores = true;  // whether the plan may

    /// Every tensor that the spec's operator takes, the optional ones included; contiguous, exactly as large as needed.
    explicit TensorsCase(std::string_view spec_text);

    /// A contiguous tensor in memory of its own, its bytes all alike and a finite number in every type.
    kvjit_tensor tensor(std::int32_t dtype, std::vector<std::int64_t> shape);

    /// Every byte of every tensor.
    std::vector<std::byte> snapshot() const;

private:
    void add_cache();
    void add_attention();
    std::deque<std::vector<std::byte>> memory_;
};

}  // namespace kvjit::test
