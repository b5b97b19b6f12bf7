// The tensors of a call, for the arrays and the batch of calls/arrays.h.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "calls/arrays.h"

namespace kvjit::calls {

/// Gives memory that begins at a multiple of 16 bytes.
using Allocate = std::function<void*(std::size_t bytes)>;

/// Every tensor that the spec's operator takes, the optional ones included, dense.
struct CallTensors {
    struct Rows {
        std::int64_t query, key;
    };
    kvjit_tensors tensors;

    CallTensors(const IndexArrays& arrays, Rows rows, Allocate allocate);

    /// One more, in memory of its own.
    kvjit_tensor tensor(int dtype, const Numbers& shape);
    /// The memory of all tensors that were made, in the order in which they were.
    const std::vector<std::span<std::byte>>& pieces() const { return pieces_; }
    /// Every byte of these.
    std::vector<std::byte> snapshot() const;

private:
    void add_cache(const IndexArrays& arrays);
    void add_attention(const IndexArrays& arrays, Rows rows);

    Allocate allocate_;
    std::vector<std::span<std::byte>> pieces_;
};

/// The bytes of a dense tensor.
std::span<std::byte> bytes_of(const kvjit_tensor& tensor);
/// Its elements; T is their type.
template <class T>
std::span<T> elements_of(const kvjit_tensor& tensor) {
    return {static_cast<T*>(tensor.data), bytes_of(tensor).size() / sizeof(T)};
}
/// Fills memory with a pattern, which is no longer than it, again and again.
using Repeat = std::function<void(std::span<std::byte> memory, std::span<const std::byte> pattern)>;
void repeat_in_host_memory(std::span<std::byte> memory, std::span<const std::byte> pattern);

/// Normal numbers; whole ones from -127 to 127 in integers. Of a large tensor the first `most` elements are drawn, and
/// the others repeat them. `tensor`: dense, or absent.
void draw(const kvjit_tensor& tensor, Rng& rng, std::int64_t most = INT64_MAX);
/// The inputs of a call: normal numbers, any codes, scales from 0.01 to 0.02. `repeat` writes into the tensors.
void draw_inputs(const kvjit_tensors& tensors, Rng& rng, std::int64_t most = INT64_MAX,
                 const Repeat& repeat = repeat_in_host_memory);

}  // namespace kvjit::calls
