#include "inspect/sass/gpus.h"

#include <algorithm>
#include <iterator>

#include "generator/architecture.h"

namespace kvjit::tool::sass {
namespace {

constexpr Gpu kGpus[] = {
    {"A100", "sm_80", 108, 1.41e9, 2.039e12, 312e12, 8, 2},  {"A10", "sm_86", 72, 1.695e9, 0.6e12, 125e12, 16, 1},
    {"L40S", "sm_89", 142, 2.52e9, 0.864e12, 362e12, 16, 1}, {"H100", "sm_90a", 132, 1.83e9, 3.35e12, 989e12, 6.3, 1},
    {"H200", "sm_90a", 132, 1.83e9, 4.8e12, 989e12, 6.3, 1}, {"B200", "sm_100a", 148, 1.85e9, 8e12, 2250e12, 6.3, 1},
};

int number_of(std::string_view architecture) {
    return gen::architecture_of(architecture).number;
}

}  // namespace

double Gpu::best_product_cycles() const {
    constexpr int kOperations = 2 * 16 * 8 * 16;
    return multiprocessors * clock * kQuarters * kOperations / tensor;
}

double Gpu::float32() const {
    constexpr int kOperations = 64;  // of a warp's instruction: a product and a sum of each lane
    return multiprocessors * clock * kQuarters * kOperations / float_cycles;
}

std::span<const Gpu> gpus() {
    return kGpus;
}

std::vector<Gpu> gpus_of(const std::string& architecture) {
    std::vector<Gpu> found;
    std::ranges::copy_if(kGpus, std::back_inserter(found), [number = number_of(architecture)](const Gpu& gpu) {
        return number_of(gpu.architecture) == number;
    });
    return found;
}

}  // namespace kvjit::tool::sass
