#include "backend.h"
#include "cuda/cuda_backend.h"
#ifdef KVJIT_CPU_JIT
#include "cpu/cpu_backend.h"
#include "cpu/emulated_backend.h"
#endif

namespace kvjit::rt {
namespace {

std::unique_ptr<Backend>& place(Backends& backends, gen::Backend which) {
    return backends[static_cast<std::size_t>(which)];
}

}  // namespace

Backends make_backends([[maybe_unused]] const BackendOptions& options) {
    Backends backends;
    place(backends, gen::Backend::kCuda) = make_cuda_backend();
#ifdef KVJIT_CPU_JIT
    place(backends, gen::Backend::kCpu) = make_cpu_backend(options);
    place(backends, gen::Backend::kCudaEmulated) = make_emulated_backend(options);
#endif
    return backends;
}

}  // namespace kvjit::rt
