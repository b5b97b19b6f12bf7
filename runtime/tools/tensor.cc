#include "tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "generator/element_type.h"
#include "gpu_access.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kAlignment = 64;

/// IEEE 754's way to make 16 bits of a sign, a biased exponent and a mantissa.
struct Format {
    int mantissa_bits, bias;
    int mantissas() const { return 1 << mantissa_bits; }
    int infinity() const { return (2 * bias + 1) << mantissa_bits; }
};
constexpr Format kHalf = {10, 15}, kBfloat16 = {7, 127};

template <class T>
T read_as(const std::byte* memory, std::int64_t i) {
    T value;
    std::memcpy(&value, memory + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
}

template <class T>
void write_as(std::byte* memory, std::int64_t i, T value) {
    std::memcpy(memory + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

double to_number(Format format, std::uint16_t bits) {
    const int exponent = (bits & 0x7fff) >> format.mantissa_bits;
    const int mantissa = bits % format.mantissas();
    const double sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == 2 * format.bias + 1) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
    const int whole = exponent ? mantissa + format.mantissas() : mantissa;
    return sign * std::ldexp(whole, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

/// Rounded to nearest, ties to even.
std::uint16_t from_number(Format format, double number) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(number) ? 0x8000 : 0);
    const double magnitude = std::fabs(number);
    if (std::isnan(number)) return static_cast<std::uint16_t>(format.infinity() + format.mantissas() / 2);
    if (magnitude == 0) return sign;
    if (std::isinf(magnitude)) return sign | static_cast<std::uint16_t>(format.infinity());
    const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
    if (exponent > format.bias) return sign | static_cast<std::uint16_t>(format.infinity());
    // mantissas() to twice as many; fewer: subnormal. A carry out of the mantissa is the next exponent, up to infinity.
    const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
    const int exponents_before = exponent + format.bias - 1;
    return sign | static_cast<std::uint16_t>((exponents_before << format.mantissa_bits) + static_cast<int>(units));
}

}  // namespace

std::size_t element_bytes(kvjit_dtype dtype) {
    return static_cast<std::size_t>(gen::dtype_bytes(dtype));
}

Tensor::Tensor(kvjit_dtype dtype, std::vector<std::int64_t> shape, std::byte fill)
    : dtype_(dtype), shape_(std::move(shape)), size_(1) {
    for (const std::int64_t extent : shape_) size_ *= extent;
    const std::size_t alignment = std::max(kAlignment, gpu_page_bytes());
    const std::size_t rounded_up = (byte_count() / alignment + 1) * alignment;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded_up)));
    if (!memory_) throw std::bad_alloc();
    show_to_gpu(memory_.get(), rounded_up);
    std::memset(memory_.get(), std::to_integer<int>(fill), byte_count());
}

void Tensor::Free::operator()(std::byte* memory) const {
    hide_from_gpu(memory);
    std::free(memory);
}

Tensor Tensor::clone() const {
    if (!present()) return {};
    Tensor copy(dtype_, shape_, std::byte{0});
    std::ranges::copy(bytes(), copy.bytes().begin());
    return copy;
}

kvjit_tensor Tensor::view() const {
    if (!present()) return {};
    return kvjit_tensor_contiguous(memory_.get(), dtype_, static_cast<std::int32_t>(shape_.size()), shape_.data());
}

double Tensor::number(std::int64_t i) const {
    switch (dtype_) {
        case KVJIT_F32:
            return static_cast<double>(read_as<float>(memory_.get(), i));
        case KVJIT_F16:
            return to_number(kHalf, read_as<std::uint16_t>(memory_.get(), i));
        case KVJIT_BF16:
            return to_number(kBfloat16, read_as<std::uint16_t>(memory_.get(), i));
        case KVJIT_I8:
            return read_as<std::int8_t>(memory_.get(), i);
        case KVJIT_U8:
            return read_as<std::uint8_t>(memory_.get(), i);
        case KVJIT_I32:
            return read_as<std::int32_t>(memory_.get(), i);
        case KVJIT_I64:
            return static_cast<double>(read_as<std::int64_t>(memory_.get(), i));
        case KVJIT_AUTO:
            break;
    }
    return std::numeric_limits<double>::quiet_NaN();
}

std::int64_t Tensor::integer(std::int64_t i) const {
    return dtype_ == KVJIT_I64 ? read_as<std::int64_t>(memory_.get(), i) : static_cast<std::int64_t>(number(i));
}

Tensor converted(const Tensor& tensor, kvjit_dtype dtype) {
    if (!tensor.present()) return {};
    if (dtype == tensor.dtype()) return tensor.clone();
    Tensor result(dtype, {tensor.shape().begin(), tensor.shape().end()}, std::byte{0});
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const double number = tensor.number(i);
        if (dtype == KVJIT_F16) write_as(result.bytes().data(), i, from_number(kHalf, number));
        if (dtype == KVJIT_BF16) write_as(result.bytes().data(), i, from_number(kBfloat16, number));
        if (dtype == KVJIT_I8) write_as(result.bytes().data(), i, static_cast<std::int8_t>(number));
        if (dtype == KVJIT_F32) write_as(result.bytes().data(), i, static_cast<float>(number));
    }
    return result;
}

std::string position_text(std::span<const std::int64_t> shape, std::int64_t i) {
    std::string text = ")";
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        text = std::to_string(i % shape[axis]) + text;
        i /= shape[axis];
        if (axis > 0) text = ", " + text;
    }
    return "(" + text;
}

}  // namespace kvjit::tool
