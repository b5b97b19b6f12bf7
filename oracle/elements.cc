#include "oracle/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kvjit::oracle {
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

/// IEEE 754's way to make 16 bits of a sign, a biased exponent and a fraction.
struct Format {
    int fraction_bits, bias;
    int fractions() const { return 1 << fraction_bits; }
    int exponents() const { return 1 << (15 - fraction_bits); }
};
constexpr Format kHalf = {10, 15}, kBfloat16 = {7, 127};

double from_format(Format format, int bits) {
    const double sign = (bits & 0x8000) ? -1 : 1;
    const int biased = (bits & 0x7fff) / format.fractions();
    const double fraction = static_cast<double>(bits % format.fractions()) / format.fractions();
    if (biased == format.exponents() - 1)
        return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
    if (biased == 0) return sign * std::ldexp(fraction, 1 - format.bias);
    return sign * std::ldexp(1 + fraction, biased - format.bias);
}

/// The number of each of the 2^16 patterns: a test reads millions of them.
std::vector<double> all_numbers(Format format) {
    std::vector<double> numbers(1 << 16);
    for (std::size_t bits = 0; bits < numbers.size(); ++bits)
        numbers[bits] = from_format(format, static_cast<int>(bits));
    return numbers;
}

std::uint16_t to_format(Format format, double number) {
    const int infinity = (format.exponents() - 1) * format.fractions();
    if (std::isnan(number)) return static_cast<std::uint16_t>(infinity + format.fractions() / 2);
    const std::uint16_t sign = std::signbit(number) ? 0x8000 : 0;
    const double magnitude = std::abs(number);
    if (magnitude == 0) return sign;
    if (std::isinf(magnitude)) return sign | static_cast<std::uint16_t>(infinity);
    // Numbers from 0 on, in order, are the patterns 0, 1, 2, ...: each power of two holds as many equal steps as there
    // are fractions. What rounds up past the largest takes infinity's pattern.
    int exponent = 0;
    std::frexp(magnitude, &exponent);  // magnitude < 2^exponent
    const int smallest_step = 1 - format.bias - format.fraction_bits;
    const int step = std::max(exponent - 1 - format.fraction_bits, smallest_step);
    const double steps = std::nearbyint(std::scalbn(magnitude, -step));
    const double pattern = static_cast<double>(step - smallest_step) * format.fractions() + steps;
    return sign | static_cast<std::uint16_t>(std::min<double>(pattern, infinity));
}

}  // namespace

std::size_t bytes_of(int dtype) {
    switch (dtype) {
        case KVJIT_F32:
        case KVJIT_I32:
            return 4;
        case KVJIT_F16:
        case KVJIT_BF16:
            return 2;
        case KVJIT_I64:
            return 8;
        default:
            return 1;
    }
}

double from_half(std::uint16_t bits) {
    static const std::vector<double> numbers = all_numbers(kHalf);
    return numbers[bits];
}
std::uint16_t to_half(double number) {
    return to_format(kHalf, number);
}
double from_bfloat16(std::uint16_t bits) {
    static const std::vector<double> numbers = all_numbers(kBfloat16);
    return numbers[bits];
}
std::uint16_t to_bfloat16(double number) {
    return to_format(kBfloat16, number);
}

double read_element(const std::byte* memory, int dtype, std::int64_t index) {
    switch (dtype) {
        case KVJIT_F32:
            return static_cast<double>(load<float>(memory, index));
        case KVJIT_F16:
            return from_half(load<std::uint16_t>(memory, index));
        case KVJIT_BF16:
            return from_bfloat16(load<std::uint16_t>(memory, index));
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
        case KVJIT_BF16:
            return save(memory, index, to_bfloat16(number));
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

}  // namespace kvjit::oracle
