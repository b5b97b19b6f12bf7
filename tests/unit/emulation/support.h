// Small kernels, written in the tests, on the emulator.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/device.h"
#include "images/image.h"

namespace kvjit::test {

/// A kernel compiled for this machine: `body` of a function of `const Args& args` in namespace kvjit, behind the
/// primitives. Its first line is test.cu:1.
rt::ImagePtr kernel(std::string_view body);

/// The same for the oldest machine.
rt::ImagePtr baseline_kernel(std::string_view body);

/// An emulator of its own.
std::unique_ptr<rt::Device> device(std::uint64_t seed = 1);

struct Args {
    const void* in = nullptr;
    void* out = nullptr;
    unsigned* words = nullptr;
    long number = 0;
};

/// On the emulator of that seed. Not thread-safe.
gen::Result<void> launch(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed = 1);

/// A launch that succeeds.
void run(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed = 1);

/// The message of a launch that fails.
std::string failure(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed = 1);

bool contains(std::string_view text, std::string_view part);

}  // namespace kvjit::test
