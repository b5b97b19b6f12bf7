// kvjit.hpp in a CUDA source, beside device code.
#include <vector>

#include <kvjit/kvjit.hpp>

__global__ void twice(float* values) {
    values[threadIdx.x] *= 2;
}

int main() {
    const std::vector<kvjit::half> values(6, kvjit::half(0.5f));
    const kvjit::Tensor tensor(values, {2, 3});
    const kvjit::Executor executor(1, [](std::int64_t count, kvjit::Task task) {
        for (std::int64_t i = 0; i < count; ++i) task(i);
    });
    const kvjit::KernelSpec spec;
    return spec.text() && tensor.rank == 2 && executor.concurrency == 1 ? 0 : 1;
}
