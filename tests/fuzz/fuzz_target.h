// What a fuzz target gives its driver, be it libFuzzer or seeded_driver.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// Ends the process if `data` is taken for what it isn't.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace kvjit::test {

/// A real input, one of several: what is damaged.
std::string good_input(std::uint64_t number);

}  // namespace kvjit::test
