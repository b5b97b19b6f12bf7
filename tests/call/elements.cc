#include "call/elements.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace kvjit::test {
namespace {

template <class T>
T load(const std::byte* memory, std::int64_t index) {
    T value;
    std::memcpy(&value, memory + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
}

template <class T>
void save(std::byte* memory, std::int64_t index, T value) {
    std::memcpy(memory + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

std::size_t bytes_of(int dtype) {
    switch (dtype) {
        case KVJIT_F32:
        case KVJIT_I32:
            return 4;
        case KVJIT_F16:
            return 2;
        case KVJIT_I64:
            return 8;
        default:
            return 1;
    }
}

double from_half(std::uint16_t bits) {
    const double sign = (bits & 0x8000) ? -1 : 1;
    const int biased = (bits & 0x7c00) >> 10;
    const double fraction = (bits & 0x03ff) / 1024.0;
    if (biased == 0x1f) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
    if (biased == 0) return sign * fraction * std::pow(2.0, -14);
    return sign * (1 + fraction) * std::pow(2.0, biased - 15);
}

std::uint16_t to_half(double number) {
    if (std::isnan(number)) return 0x7e00;
    const std::uint16_t sign = std::signbit(number) ? 0x8000 : 0;
    const double magnitude = std::abs(number);
    // 65520 lies halfway between the largest half and what would come next: ties go to even, which is infinity.
    if (magnitude >= 65520) return sign | 0x7c00;
    if (magnitude == 0) return sign;
    // Halves from 0 on, in order, are the patterns 0, 1, 2, ...: each power of two holds 1024 equal steps.
    int exponent = 0;
    std::frexp(magnitude, &exponent);  // magnitude < 2^exponent
    const int step = exponent < -13 ? -24 : exponent - 11;
    const double steps = std::nearbyint(std::scalbn(magnitude, -step));
    const int pattern = step == -24 ? static_cast<int>(steps) : (step + 24) * 1024 + static_cast<int>(steps);
    return sign | static_cast<std::uint16_t>(pattern);
}

double read_element(const std::byte* memory, int dtype, std::int64_t index) {
    switch (dtype) {
        case KVJIT_F32:
            return static_cast<double>(load<float>(memory, index));
        case KVJIT_F16:
            return from_half(load<std::uint16_t>(memory, index));
        case KVJIT_I8:
            return load<std::int8_t>(memory, index);
        case KVJIT_I32:
            return load<std::int32_t>(memory, index);
        case KVJIT_I64:
            return static_cast<double>(load<std::int64_t>(memory, index));
        default:
            return std::to_integer<int>(memory[index]);
    }
}

void write_element(std::byte* memory, int dtype, std::int64_t index, double number) {
    switch (dtype) {
        case KVJIT_F32:
            return save(memory, index, static_cast<float>(number));
        case KVJIT_F16:
            return save(memory, index, to_half(number));
        case KVJIT_I8:
            return save(memory, index, static_cast<std::int8_t>(number));
        case KVJIT_I32:
            return save(memory, index, static_cast<std::int32_t>(number));
        case KVJIT_I64:
            return save(memory, index, static_cast<std::int64_t>(number));
        default:
            return save(memory, index, static_cast<std::uint8_t>(number));
    }
}

}  // namespace kvjit::test
