// Small kernels, written in the tests, on the emulator.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/device.h"
#include "image.h"

namespace kvjit::test {

/// A kernel compiled for the machine: `body` of `void run(const Args& args)` in namespace kvjit, whose first line is
/// test.cu:1. Args has the members in, out, words and number; `before` stands in front of it, at before.h:1.
/// No include but the primitives.
rt::ImagePtr kernel(std::string_view body, std::string_view before = "");

/// The same for the oldest machine.
rt::ImagePtr baseline_kernel(std::string_view body, std::string_view before = "");

struct Args {
    const void* in = nullptr;
    void* out = nullptr;
    unsigned* words = nullptr;
    long number = 0;
};

/// On an emulator of that seed.
gen::Result<void> launch(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed = 1);

/// A launch that succeeds.
void run(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed = 1);

/// The message of a launch that fails, of any seed from 1 to 20.
std::string failure(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed = 1);

bool contains(std::string_view text, std::string_view part);

}  // namespace kvjit::test
