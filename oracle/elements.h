// The oracle's own view of memory: elements by index as doubles, with its own conversions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kvjit/kvjit.h"

namespace kvjit::oracle {

std::size_t bytes_of(int dtype);

/// IEEE binary16 to double, exactly.
double from_half(std::uint16_t bits);
/// Round to nearest even; past the largest finite value to infinity. NaN gives a quiet NaN.
std::uint16_t to_half(double number);
/// bfloat16 likewise.
double from_bfloat16(std::uint16_t bits);
std::uint16_t to_bfloat16(double number);

/// Elements of float32, float16, bfloat16, int8, int32 or int64 memory. `index` counts elements.
double read_element(const std::byte* memory, int dtype, std::int64_t index);
/// Rounds to nearest even where `dtype` can't hold `number`.
void write_element(std::byte* memory, int dtype, std::int64_t index, double number);

/// Memory with axes: element (i0, i1, ...) lies at index i0*strides[0] + i1*strides[1] + ...
struct Strided {
    std::byte* data = nullptr;
    int dtype = KVJIT_AUTO;  // KVJIT_AUTO: absent
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;

    bool present() const { return dtype != KVJIT_AUTO; }
    template <class... I>
    std::int64_t index(I... i) const {
        std::int64_t at = 0;
        std::size_t axis = 0;
        ((at += static_cast<std::int64_t>(i) * strides[axis++]), ...);
        return at;
    }
    template <class... I>
    double at(I... i) const {
        return read_element(data, dtype, index(i...));
    }
};

}  // namespace kvjit::oracle
