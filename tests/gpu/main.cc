// Tests of kvjit on a GPU, beyond what conformance tests of results cover. Beside doctest's options:
//     --target NAME   cuda, cuda:N (default: cuda); cuda-emulated leaves out what needs a GPU
//     --describe      say which GPU and driver there are, and run nothing
// Exit status: 0 all passed, 1 some failed, 2 bad arguments, 77 there is no GPU.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "gpu/machine.h"
#include "limits/cuda/gpu.h"

namespace kvjit::test {
namespace {

constexpr int kNoGpu = 77;  // what test drivers take for "skipped"

std::unique_ptr<Machine> chosen;

struct Arguments {
    std::string target = "cuda";
    bool describe = false;
    bool good = true;
};

Arguments read_arguments(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--describe") == 0) arguments.describe = true;
        if (std::strcmp(argv[i], "--target") != 0) continue;
        arguments.target = i + 1 < argc ? argv[++i] : "";
    }
    int ordinal = 0, end = 0;
    const char* name = arguments.target.c_str();
    const bool numbered = std::sscanf(name, "cuda:%d%n", &ordinal, &end) == 1 && name[end] == '\0' && ordinal >= 0;
    arguments.good = numbered || arguments.target == "cuda" || arguments.target == "cuda-emulated";
    return arguments;
}

/// The GPU's number. Precondition: good arguments that name one.
int ordinal_of(const std::string& target) {
    return target.starts_with("cuda:") ? std::stoi(target.substr(5)) : 0;
}

void describe(const gpu::Gpu& gpu) {
    const auto memory = gpu.memory();
    std::printf("%s: %s, sm_%d, %d multiprocessors, %zu MiB, %zu MiB free, driver for CUDA %d.%d\n",
                gpu.target().c_str(), gpu.name().c_str(), gpu.capability(), gpu.attribute(gpu::kMultiprocessorCount),
                memory.total_bytes >> 20, memory.free_bytes >> 20, gpu::Gpu::driver_version() / 1000,
                gpu::Gpu::driver_version() % 1000 / 10);
}

/// False, with the reason said, where there is no such GPU.
bool choose(const std::string& target) {
    if (target == "cuda-emulated") {
        chosen = make_host_machine();
        return true;
    }
    if (const auto opened = gpu::open_driver(); !opened) {
        std::printf("SKIP: %s\n", opened.error().c_str());
        return false;
    }
    if (ordinal_of(target) >= gpu::Gpu::count()) {
        std::printf("SKIP: no GPU %d: the driver knows of %d\n", ordinal_of(target), gpu::Gpu::count());
        return false;
    }
    chosen = make_gpu_machine(ordinal_of(target));
    return true;
}

}  // namespace

Machine& machine() {
    return *chosen;
}

int run(int argc, char** argv) {
    const Arguments arguments = read_arguments(argc, argv);
    if (!arguments.good) {
        std::fputs("usage: [--target cuda|cuda:N|cuda-emulated] [--describe] [doctest options]\n", stderr);
        return 2;
    }
    if (!choose(arguments.target)) return kNoGpu;
    const bool emulated = arguments.target == "cuda-emulated";
    if (arguments.describe) {
        if (!emulated) describe(gpu_of_machine());
        return 0;
    }
    doctest::Context context(argc, argv);
    if (emulated) context.addFilter("test-suite-exclude", "GPU");
    return context.run();
}

}  // namespace kvjit::test

int main(int argc, char** argv) {
    try {
        return kvjit::test::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kvjit_gpu_test: %s\n", error.what());
        return 1;
    }
}
