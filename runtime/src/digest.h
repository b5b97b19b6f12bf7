// The one cryptographic hash that names and guards entries: BLAKE2b with 256 bits.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kvjit::rt {

using Digest = std::array<std::uint8_t, 32>;

/// BLAKE2b-256 of the concatenated parts. The boundaries of the parts are not hashed: a caller that needs them hashes
/// lengths too. Thread-safe.
Digest digest_of(std::initializer_list<std::string_view> parts);

/// The digest's 32 bytes, which live as long as it does.
inline std::string_view as_text(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// 64 lower-case hexadecimal digits.
std::string digest_hex(const Digest& digest);

/// The hexadecimal digest of the text.
std::string digest_hex(std::string_view text);

}  // namespace kvjit::rt
