// Reads a strided tensor, or chosen places of one of its axes, into dense memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan.h"

namespace kvjit::rt {

/// What to read: axes with extents and strides, row-major in the result.
class Gather {
public:
    /// All of a tensor.
    static Gather of(const kvjit_tensor& tensor);
    /// The same, once for each of these addresses, which become the first axis.
    static Gather of_blocks(const kvjit_tensor& block, std::vector<std::int64_t> addresses);

    /// Reads only index `i` of an axis, which is gone then.
    void select(int axis, std::int64_t i);
    /// Reads only the first `count` indices of an axis. Precondition: it has that many.
    void crop(int axis, std::int64_t count) { extents_[static_cast<std::size_t>(axis)] = count; }
    /// Keeps one index of an axis, which stays with extent 1.
    void keep(int axis, std::int64_t i);
    /// Index i of an axis becomes places[i]; zeros where that is negative.
    void pick(int axis, const std::vector<std::int64_t>& places);

    /// The result's axes.
    const std::vector<std::int64_t>& shape() const { return extents_; }
    const std::vector<std::int64_t>& byte_strides() const { return strides_; }
    std::int64_t bytes() const;

    /// Errors: those of Plan::download.
    gen::Result<void> read(Plan& plan, std::byte* to) const;

private:
    std::intptr_t base_ = 0;
    std::int64_t element_bytes_ = 1;
    std::vector<std::int64_t> extents_, strides_;  // strides in bytes
    int picked_ = -1;                              // the axis whose indices have offsets of their own
    std::vector<std::int64_t> offsets_;            // in bytes; kAbsent: zeros
};

}  // namespace kvjit::rt
