#include "recording/placed.h"

#include <cstring>

namespace kvjit::tool {
namespace {

constexpr std::byte kBetween{0xff};  // NaN in every type of floating point
constexpr std::int64_t kBlockAlignment = 64;

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        strides[axis] = stride;
        stride *= shape[axis];
    }
    return strides;
}

/// Calls f(offset in memory, index of the dense tensor), both in elements, for each element.
template <class F>
void for_each_element(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                      std::int64_t count, const F& f) {
    std::vector<std::int64_t> index(shape.size(), 0);
    std::int64_t offset = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        f(offset, i);
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            offset += strides[axis];
            if (++index[axis] < shape[axis]) break;
            offset -= shape[axis] * strides[axis];
            index[axis] = 0;
        }
    }
}

}  // namespace

Placed::Placed(const Tensor& dense, const std::vector<std::int64_t>& strides)
    : shape_(dense.shape().begin(), dense.shape().end()), strides_(strides) {
    if (!dense.present()) return;
    if (strides_.empty()) strides_ = dense_strides(shape_);
    std::int64_t spread = 1;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
        if (shape_[axis] > 0) spread += (shape_[axis] - 1) * strides_[axis];
    }
    memory_ = Tensor(dense.dtype(), {dense.size() == 0 ? 0 : spread}, kBetween);
    const auto bytes = static_cast<std::int64_t>(element_bytes(dense.dtype()));
    for_each_element(shape_, strides_, dense.size(), [&](std::int64_t to, std::int64_t from) {
        std::memcpy(memory_.bytes().data() + to * bytes, dense.bytes().data() + from * bytes,
                    static_cast<std::size_t>(bytes));
    });
    view_ = dense.view();
    view_.data = memory_.view().data;
    for (std::size_t axis = 0; axis < shape_.size() && axis < KVJIT_MAX_RANK; ++axis) {
        view_.strides[axis] = strides_[axis];
    }
}

Placed Placed::blocks(const Tensor& dense) {
    if (!dense.present()) return {};
    std::vector<std::int64_t> strides = dense_strides(dense.shape());
    const std::int64_t unit = kBlockAlignment / static_cast<std::int64_t>(element_bytes(dense.dtype()));
    strides[0] = (strides[0] + unit - 1) / unit * unit;
    return {dense, strides};
}

void Placed::move(const Place& place) {
    if (!memory_.bytes().empty()) view_.data = place(memory_.bytes().data(), memory_.bytes().size());
}

std::int64_t Placed::address(std::int64_t i) const {
    const auto bytes = static_cast<std::int64_t>(element_bytes(memory_.dtype()));
    return reinterpret_cast<std::int64_t>(view_.data) + i * strides_[0] * bytes;
}

Tensor Placed::dense() const {
    if (!present()) return {};
    Tensor result(memory_.dtype(), shape_, std::byte{0});
    const auto bytes = static_cast<std::int64_t>(element_bytes(memory_.dtype()));
    for_each_element(shape_, strides_, result.size(), [&](std::int64_t from, std::int64_t to) {
        std::memcpy(result.bytes().data() + to * bytes, memory_.bytes().data() + from * bytes,
                    static_cast<std::size_t>(bytes));
    });
    return result;
}

}  // namespace kvjit::tool
