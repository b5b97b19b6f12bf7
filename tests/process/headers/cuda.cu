// kvjit.hpp in a CUDA source, beside device code.
#include <kvjit/kvjit.hpp>

__global__ void twice(float* values) {
    values[threadIdx.x] *= 2;
}

int main() {
    const kvjit::KernelSpec spec;
    return spec.struct_size == sizeof(kvjit_spec) ? 0 : 1;
}
