// A recorded tensor in memory of its own, where its elements lie as the call's did.
#pragma once

#include <cstdint>
#include <vector>

#include "machine.h"
#include "tensor.h"

namespace kvjit::tool {

class Placed {
public:
    Placed() = default;
    /// `strides`: in elements, one for each axis; empty: dense.
    Placed(const Tensor& dense, const std::vector<std::int64_t>& strides);
    /// Blocks along the first axis, each from a multiple of 64 bytes on.
    static Placed blocks(const Tensor& dense);

    bool present() const { return memory_.present(); }
    /// For kvjit; absent if this is.
    const kvjit_tensor& view() const { return view_; }
    /// Copies the memory to `place`, where view() and address() find it from then on. dense() reads this one's own.
    void move(const Place& place);
    /// The address of index i of the first axis.
    std::int64_t address(std::int64_t i) const;
    /// The elements as they are now.
    Tensor dense() const;

private:
    Tensor memory_;
    std::vector<std::int64_t> shape_, strides_;
    kvjit_tensor view_{};
};

}  // namespace kvjit::tool
