#include "digest.h"

#include <sodium.h>

#include <tuple>

#include "hex.h"

namespace kvjit::rt {

Digest digest_of(std::initializer_list<std::string_view> parts) {
    // Chooses the vector code for this machine; without this call the hash is correct, but slower.
    [[maybe_unused]] static const int ready = sodium_init();
    crypto_generichash_state state;
    crypto_generichash_init(&state, nullptr, 0, std::tuple_size_v<Digest>);
    for (std::string_view part : parts) {
        crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
    }
    Digest digest{};
    crypto_generichash_final(&state, digest.data(), digest.size());
    return digest;
}

std::string digest_hex(const Digest& digest) {
    return to_hex(as_text(digest));
}

std::string digest_hex(std::string_view text) {
    return digest_hex(digest_of({text}));
}

}  // namespace kvjit::rt
