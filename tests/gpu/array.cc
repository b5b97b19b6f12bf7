#include "gpu/array.h"

#include <algorithm>
#include <utility>

namespace kvjit::test {
namespace {

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * shape[axis];
    return strides;
}

std::size_t bytes_in(int dtype, const std::vector<std::int64_t>& shape) {
    std::size_t bytes = bytes_of(dtype);
    for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    return bytes;
}

}  // namespace

Array::Array(Machine& machine, int dtype, std::vector<std::int64_t> shape)
    : machine_(&machine), bytes_(bytes_in(dtype, shape)) {
    memory_ = machine.allocate(bytes_.size());
    host_ = {bytes_.data(), dtype, shape, row_major(shape)};
}

Array::Array(Array&& other) noexcept {
    *this = std::move(other);
}

Array& Array::operator=(Array&& other) noexcept {
    std::swap(machine_, other.machine_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(host_, other.host_);
    return *this;
}

Array::~Array() {
    if (memory_ != nullptr) machine_->release(memory_);
}

Array Array::clone() const {
    if (machine_ == nullptr) return {};
    Array other(*machine_, host_.dtype, host_.shape);
    std::ranges::copy(bytes_, other.bytes_.begin());
    return other;
}

void Array::set(const std::vector<std::int64_t>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        write_element(host_.data, host_.dtype, static_cast<std::int64_t>(i), static_cast<double>(values[i]));
    }
}

void Array::fill(std::byte value) {
    std::ranges::fill(bytes_, value);
}

void Array::upload() {
    if (memory_ != nullptr) machine_->upload(memory_, bytes_.data(), bytes_.size());
}

std::vector<std::byte> Array::download() const {
    std::vector<std::byte> now(bytes_.size());
    if (memory_ != nullptr) machine_->download(now.data(), memory_, now.size());
    return now;
}

kvjit_tensor Array::view() const {
    if (memory_ == nullptr) return {};
    return kvjit_tensor_contiguous(memory_, static_cast<kvjit_dtype>(host_.dtype),
                                   static_cast<std::int32_t>(host_.shape.size()), host_.shape.data());
}

}  // namespace kvjit::test
