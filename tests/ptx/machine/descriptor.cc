#include "ptx/machine/descriptor.h"

#include <string>

#include "ptx/machine/fault.h"

namespace kvjit::ptx {
namespace {

/// The fields of ISA 9.7.15.5.1.2.2, lengths in bytes.
struct Fields {
    u32 start, leading, stride, base_offset;
    u32 width;  // of the swizzled pattern, in pieces: 8, 4, 2, or 1 where nothing is swizzled

    explicit Fields(u64 bits)
        : start(length_at(bits, 0)),
          leading(length_at(bits, 16)),
          stride(length_at(bits, 32)),
          base_offset(static_cast<u32>(bits >> 49 & 7)),
          width(width_of(static_cast<u32>(bits >> 62))) {}

    /// Bytes after which the pattern repeats itself: 8 lines of `width` pieces.
    u32 pattern() const { return 128 * width; }
    /// Which of its pattern's lines of 128 bytes an address is in: its number is what swizzles the pieces. The pattern
    /// begins at a multiple of its size, or, if it doesn't, base_offset lines after one.
    u32 phase(u32 address) const { return ((address >> 7) - base_offset) & (width - 1); }

private:
    static u32 length_at(u64 bits, int bit) { return static_cast<u32>(bits >> bit & 0x3fff) << 4; }
    static u32 width_of(u32 mode) { return mode == 0 ? 1 : 16U >> mode; }
};

[[noreturn]] void refuse(const MatrixShape& shape, const std::string& what) {
    throw Fault(FaultKind::kUndefined, std::string("the descriptor of ") + shape.name + " " + what);
}

constexpr u64 kReserved = u64{3} << 14 | u64{3} << 30 | u64{7} << 46 | u64{0x3ff} << 52;

/// The matrix begins where a pattern does: table 38 and the canonical layouts, 9.7.15.5.1.2.1.3, have whole ones. Along
/// K, the leading dimension, a K-major one may begin further on in the first line, as a step of 16 of a wider one.
void check_start(const Fields& of, const MatrixShape& shape) {
    const u32 bytes = 16 * of.width, into = (of.start - 128 * of.base_offset) & (of.pattern() - 1);
    if (into == 0 || (!shape.is_transposed && into + 32 <= bytes)) return;
    refuse(shape, "begins " + std::to_string(into) + " bytes into the pattern of its swizzle of " +
                      std::to_string(bytes) + " bytes");
}

void check_strides(const Fields& of, const MatrixShape& shape) {
    const auto check = [&](u32 offset, const char* name, bool is_used) {
        if (!is_used || offset % of.pattern() == 0) return;
        refuse(shape, std::string("has a ") + name + " dimension's offset of " + std::to_string(offset) +
                          " bytes, no multiple of its swizzle's pattern of " + std::to_string(of.pattern()));
    };
    if (shape.is_transposed) {
        check(of.leading, "leading", shape.rows > 8 * of.width);
        check(of.stride, "stride", true);
    } else {
        check(of.stride, "stride", shape.rows > 8);  // the leading one is not used
    }
}

void check_defined(u64 bits, const Fields& of, const MatrixShape& shape) {
    if ((bits & kReserved) != 0) refuse(shape, "has bits that are no field's");
    if (of.width == 1) {
        if (of.base_offset != 0) refuse(shape, "has a base offset, but no swizzle");
        return;
    }
    if (shape.is_transposed && shape.rows % (8 * of.width) != 0) {
        refuse(shape, "has " + std::to_string(shape.rows) + " rows, but transposed and with a swizzle of " +
                          std::to_string(16 * of.width) + " bytes it has multiples of " + std::to_string(8 * of.width));
    }
    check_start(of, shape);
    check_strides(of, shape);
}

/// The canonical layout of 9.7.15.5.1.2.1.3, without its swizzle: of a group of 8 rows, where a piece begins.
u32 offset_of(const Fields& of, const MatrixShape& shape, u32 group, u32 piece) {
    if (!shape.is_transposed) {
        const u32 row = piece / 2, column = piece % 2;
        return row * 16 * of.width + group * of.stride + column * (of.width == 1 ? of.leading : 16);
    }
    const u32 k = piece;
    if (of.width == 1) return k % 8 * 16 + k / 8 * of.leading + group * of.stride;
    return k % 8 * 16 * of.width + k / 8 * of.stride + group % of.width * 16 + group / of.width * of.leading;
}

}  // namespace

std::vector<u32> pieces_of(u64 descriptor, const MatrixShape& shape) {
    constexpr u32 kPieces = 16;  // of 8 rows
    const Fields of(descriptor);
    check_defined(descriptor, of, shape);
    std::vector<u32> pieces(shape.rows / 8 * kPieces);
    for (u32 i = 0; i < pieces.size(); ++i) {
        const u32 address = of.start + offset_of(of, shape, i / kPieces, i % kPieces);
        pieces[i] = address ^ of.phase(address) << 4;
    }
    return pieces;
}

}  // namespace kvjit::ptx
