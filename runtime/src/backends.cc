#include "backend.h"
#ifdef KVJIT_CPU_JIT
#include "cpu/cpu_backend.h"
#endif

namespace kvjit::rt {

Backends make_backends(const BackendOptions& options) {
    Backends backends;
    const auto place = [&](gen::Backend which) -> std::unique_ptr<Backend>& {
        return backends[static_cast<std::size_t>(which)];
    };
#ifdef KVJIT_CPU_JIT
    place(gen::Backend::kCpu) = make_cpu_backend(options.compiler);
#endif
    return backends;
}

}  // namespace kvjit::rt
