// Legal tensors for a BatchCase, to be spoiled in one place at a time.
#pragma once

#include <cstddef>
#include <deque>

#include "batch_case.h"
#include "kvjit/kvjit.h"

namespace kvjit::test {

/// Every tensor that the spec's operator takes, the optional ones included, contiguous.
struct CallTensors {
    kvjit_tensors tensors;

    /// Of so many rows for new tokens and for keys.
    CallTensors(const BatchCase& c, std::int64_t query_rows, std::int64_t key_rows);

    /// A contiguous tensor in memory of its own, its bytes all alike and a finite number in every type.
    kvjit_tensor tensor(std::int32_t dtype, std::vector<std::int64_t> shape);

    /// Every byte of every tensor.
    std::vector<std::byte> snapshot() const;

private:
    void add_cache(const BatchCase& c);
    void add_new_tokens(const BatchCase& c, std::int64_t query_rows);
    void add_attention(const BatchCase& c, std::int64_t query_rows, std::int64_t key_rows);
    std::deque<std::vector<std::byte>> memory_;
};

/// Exactly as large as needed.
struct TensorsCase : BatchCase, CallTensors {
    std::int64_t layer_idx = 1;
    bool stores = true;  // whether the plan may

    explicit TensorsCase(std::string_view spec_text) : BatchCase(spec_text), CallTensors(*this, 6, 18) {}

    /// Blocks at addresses, too.
    std::vector<std::byte> snapshot() const;
};

}  // namespace kvjit::test
