// A piece of PTX on a bench: the kernel around it, a launch, and what it wrote.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ptx/machine/fault.h"
#include "ptx/machine/grid.h"
#include "ptx/machine/parser.h"

namespace kvjit::ptx {

/// Registers of all kinds, and a kernel with one parameter, `data`: %rd0 holds the address that is passed.
inline std::string kernel_of(const std::string& body) {
    return R"(.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 dynamic[];
.visible .entry bench(
    .param .align 8 .b8 data[8]
)
.maxntid 1024, 1, 1
{
    .reg .pred %p<16>;
    .reg .b16 %rs<32>;
    .reg .b32 %r<64>;
    .reg .f32 %f<256>;
    .reg .b64 %rd<128>;
    ld.param.u64 %rd0, [data];
)" + body + "\n    ret;\n}\n";
}

/// Launches `body` over a buffer of 64-bit words, whose address %rd0 has. Errors: Fault.
struct Bench {
    std::vector<u64> data;
    Launch launch = {1, 1, kLanes, 0, {}};
    Options options;

    explicit Bench(std::size_t words = 4096) : data(words, 0) { options.has_noise = false; }

    void run(const std::string& body) {
        const u64 address = reinterpret_cast<u64>(data.data());
        launch.parameters.resize(sizeof address);
        std::memcpy(launch.parameters.data(), &address, sizeof address);
        const std::vector<Kernel> kernels = parse_module(kernel_of(body));
        run_grid(kernels.at(0), launch, {{address, address + data.size() * sizeof(u64)}}, options);
    }
};

/// %rd1: the address of the thread's word of the buffer, word number `first` + thread.
inline std::string word_of_thread(int first) {
    return "mov.u32 %r60, %tid.x; mul.wide.u32 %rd60, %r60, 8; add.s64 %rd1, %rd0, %rd60; add.s64 %rd1, %rd1, " +
           std::to_string(8 * first) + ";\n";
}

inline u32 bits_of(float value) {
    return std::bit_cast<u32>(value);
}

}  // namespace kvjit::ptx
