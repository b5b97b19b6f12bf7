// An owned, contiguous tensor for the tool: aligned memory, and the kvjit view of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kvjit/kvjit.h"

namespace kvjit::tool {

/// Bytes of one element.
std::size_t element_bytes(kvjit_dtype dtype);

/// Row-major, move-only; clone() copies. Memory is 64-byte aligned, and the GPU's too where one is open (gpu_access.h).
/// dtype KVJIT_AUTO: the tensor is absent.
class Tensor {
public:
    Tensor() = default;
    /// Every byte is `fill`. The caller has checked that the extents are not negative and that their product fits.
    Tensor(kvjit_dtype dtype, std::vector<std::int64_t> shape, std::byte fill);

    Tensor clone() const;
    bool present() const { return dtype_ != KVJIT_AUTO; }
    kvjit_dtype dtype() const { return dtype_; }
    std::span<const std::int64_t> shape() const { return shape_; }
    std::int64_t size() const { return size_; }
    std::span<std::byte> bytes() { return {memory_.get(), byte_count()}; }
    std::span<const std::byte> bytes() const { return {memory_.get(), byte_count()}; }
    /// A view that kvjit may write to if this tensor is an output; an absent tensor gives an absent view.
    kvjit_tensor view() const;

    /// Element i in memory order as a number; float16 and integers convert exactly.
    double number(std::int64_t i) const;
    /// The same of a tensor of integers.
    std::int64_t integer(std::int64_t i) const;

private:
    std::size_t byte_count() const { return static_cast<std::size_t>(size_) * element_bytes(dtype_); }

    struct Free {
        void operator()(std::byte* memory) const;
    };
    kvjit_dtype dtype_ = KVJIT_AUTO;
    std::vector<std::int64_t> shape_;
    std::int64_t size_ = 0;
    std::unique_ptr<std::byte[], Free> memory_;
};

/// A tensor as `dtype`, a type of floating point, rounded to nearest even, or int8, which its numbers are. Absent stays
/// absent.
Tensor converted(const Tensor& tensor, kvjit_dtype dtype);

/// "(1, 0, 5)": where element i of a row-major tensor lies.
std::string position_text(std::span<const std::int64_t> shape, std::int64_t i);

}  // namespace kvjit::tool
