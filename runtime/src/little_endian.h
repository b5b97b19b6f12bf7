// Little-endian integers in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvjit::rt {

/// Appends the lowest `bytes` bytes, the lowest first.
inline void put_little_endian(std::string& out, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

/// Reads up to 8 bytes.
inline std::uint64_t get_little_endian(std::string_view in) {
    std::uint64_t value = 0;
    for (std::size_t i = in.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(in[i]);
    return value;
}

}  // namespace kvjit::rt
