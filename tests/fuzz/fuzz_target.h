// What a fuzz target gives its driver, be it libFuzzer or seeded_driver.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

/// Ends the process if `data` is taken for what it isn't.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace kvjit::test {

/// A real input, one of several: what is damaged.
std::string good_input(std::uint64_t number);

/// Ends the process unless `what` holds.
inline void require(bool holds, std::string_view what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %.*s\n", static_cast<int>(what.size()), what.data());
    std::abort();
}

inline std::string as_text(const std::uint8_t* data, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(data), size);
}

}  // namespace kvjit::test
