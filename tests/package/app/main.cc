// Runs what its bundle has: app SPEC... Prints how many programs came from where.
#include <cstdio>

#include "app-kernels.kvjb.h"
#include "kvjit/kvjit.hpp"

int main(int argc, char** argv) {
    kvjit::EngineOptions options;
    options.jit = 0;
    options.cache_dir = "";
    const auto engine = kvjit::Engine::create(options);
    if (!engine) return 1;
    kvjit::Error error;
    if (kvjit_engine_add_bundle_memory(engine->get(), app_kernels_kvjb, app_kernels_kvjb_size, error.get()) !=
        KVJIT_OK) {
        return std::printf("%s\n", error.message()), 1;
    }
    for (int i = 1; i < argc; ++i) {
        const auto kernel = engine->kernel(*kvjit::KernelSpec::parse(argv[i]));
        const auto ready = kernel->prepare();
        if (!ready) return std::printf("%s\n", ready.error().message()), 1;
    }
    const kvjit_engine_stats stats = engine->stats();
    std::printf("compiles %lld bundle_hits %lld\n", static_cast<long long>(stats.compiles),
                static_cast<long long>(stats.bundle_hits));
}
