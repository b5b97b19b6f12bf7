// A whole call of kvjit's API: arrays and batch as call/arrays.h has them, and the tensors of its operator. Public
// members: a test that wants one mistake makes a legal call and changes one of them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "call/arrays.h"

namespace kvjit::test {

/// Gives memory that begins at a multiple of 16 bytes.
using Allocate = std::function<void*(std::size_t bytes)>;
/// Of the host: each piece ends at a page that can't be touched (but for up to 15 bytes). The bytes of a piece are all
/// alike, and a finite number in every type. Lives as long as a copy of the function.
Allocate guarded_memory();

/// Every tensor that the spec's operator takes, the optional ones included, dense.
struct CallTensors {
    struct Rows {
        std::int64_t query, key;
    };
    kvjit_tensors tensors;

    CallTensors(const IndexArrays& arrays, Rows rows, Allocate allocate = guarded_memory());

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

/// With exactly as many rows as its sequences have.
struct ApiCall : IndexArrays, CallTensors {
    explicit ApiCall(const CallShape& shape, Allocate allocate = guarded_memory())
        : IndexArrays(shape), CallTensors(*this, {seqstarts.back(), kvstarts.back()}, std::move(allocate)) {}
};

/// The bytes of a dense tensor.
std::span<std::byte> bytes_of(const kvjit_tensor& tensor);
/// Its elements; T is their type.
template <class T>
std::span<T> elements_of(const kvjit_tensor& tensor) {
    return {static_cast<T*>(tensor.data), bytes_of(tensor).size() / sizeof(T)};
}
/// Normal numbers; whole ones from -127 to 127 in integers. `tensor`: dense, or absent.
void draw(const kvjit_tensor& tensor, Rng& rng);
/// The inputs of a call: normal numbers, any codes, scales from 0.01 to 0.02.
void draw_inputs(const kvjit_tensors& tensors, Rng& rng);

}  // namespace kvjit::test
