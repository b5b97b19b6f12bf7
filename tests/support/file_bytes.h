// What files' formats are made of, as their pages in docs/ have it: a second hand, without the library's code.
#pragma once

#include <sodium.h>

#include <cstdint>
#include <string>

namespace kvjit::test {

/// The value's lowest bytes, the lowest first.
inline std::string little_endian(std::uint64_t value, int bytes) {
    std::string text;
    for (; bytes > 0; --bytes, value /= 256) text += static_cast<char>(value % 256);
    return text;
}

/// The BLAKE2b digest of 32 bytes.
inline std::string blake2b(const std::string& bytes) {
    std::string digest(32, '\0');
    crypto_generichash(reinterpret_cast<unsigned char*>(digest.data()), 32,
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0);
    return digest;
}

}  // namespace kvjit::test
