#include "conformance/placed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "conformance/options.h"

namespace kvjit::test {
namespace {

/// CUDA kernels take rows at multiples of 16 bytes only: whole tensors and gaps between rows have such sizes there.
constexpr std::size_t kCudaAlignment = 16;

std::size_t placed_bytes(std::size_t bytes) {
    if (!options().on_cuda()) return bytes;
    return (bytes + kCudaAlignment - 1) / kCudaAlignment * kCudaAlignment;
}

/// Elements from the first to the last, both included; 0 if an axis is empty.
std::int64_t extent_of(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == 0) return 0;
        last += (shape[axis] - 1) * strides[axis];
    }
    return last + 1;
}

/// The stride of an axis of one element is never taken: some are those of another axis, as views come out.
void disturb_single(std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& shape, Rng& rng) {
    for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) {
        const auto other = static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(shape.size()) - 1));
        if (shape[axis] == 1) strides[axis] = strides[other];
    }
}

}  // namespace

std::vector<std::int64_t> spread_strides(const std::vector<std::int64_t>& shape, Spread spread, Rng& rng) {
    std::vector<std::size_t> order(shape.size());
    for (std::size_t axis = 0; axis < order.size(); ++axis) order[axis] = axis;
    if (spread == Spread::kSwapped && order.size() > 2) std::swap(order[0], order[1]);
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t next = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
        strides[order[i]] = next;
        next *= std::max<std::int64_t>(shape[order[i]], 1);
        if (spread != Spread::kDense) next += rng.below(4) * (options().on_cuda() ? std::int64_t{kCudaAlignment} : 1);
    }
    if (spread != Spread::kDense) disturb_single(strides, shape, rng);
    return strides;
}

Placed::Placed(int dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, Guard guard)
    : buffer_(placed_bytes(static_cast<std::size_t>(extent_of(shape, strides)) * bytes_of(dtype)), guard) {
    strided_ = {buffer_.data(), dtype, std::move(shape), std::move(strides)};
    std::ranges::fill(buffer_.bytes(), std::byte{0xff});
}

Placed Placed::integers(const std::vector<std::int64_t>& values, int dtype, Guard guard) {
    Placed placed(dtype, {static_cast<std::int64_t>(values.size())}, {1}, guard);
    for (std::size_t i = 0; i < values.size(); ++i) {
        placed.set(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
    }
    return placed;
}

kvjit_tensor Placed::view() const {
    kvjit_tensor view = {};
    if (!present()) return view;
    view.data = strided_.data;
    view.dtype = strided_.dtype;
    view.rank = static_cast<std::int32_t>(strided_.shape.size());
    std::ranges::copy(strided_.shape, view.shape);
    std::ranges::copy(strided_.strides, view.strides);
    return view;
}

bool Placed::unchanged() const {
    return std::ranges::equal(buffer_.bytes(), memory_) && buffer_.slack_is_whole();
}

bool Placed::gaps_unchanged() const {
    std::vector<std::byte> expected = memory_;
    const std::size_t width = bytes_of(strided_.dtype);
    for_each_run([&](std::int64_t first, std::int64_t elements) {
        const std::size_t at = static_cast<std::size_t>(first) * width;
        std::memcpy(expected.data() + at, buffer_.data() + at, static_cast<std::size_t>(elements) * width);
    });
    return std::ranges::equal(buffer_.bytes(), expected) && buffer_.slack_is_whole();
}

std::vector<std::byte> Placed::packed() const {
    std::vector<std::byte> bytes;
    const std::size_t width = bytes_of(strided_.dtype);
    for_each_run([&](std::int64_t first, std::int64_t elements) {
        const std::byte* run = buffer_.data() + static_cast<std::size_t>(first) * width;
        bytes.insert(bytes.end(), run, run + static_cast<std::size_t>(elements) * width);
    });
    return bytes;
}

}  // namespace kvjit::test
