// Runs a step out of the bundle that is linked in, then asks for what only a compiler or a GPU's driver gives. Says
// what it saw as lines "name value". KVJIT_TEST_CACHE: the cache folder, else there is none.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "kernels.kvjb.h"
#include "process/call.h"

namespace {

void say_error(const char* name, const kvjit::Error& error) {
    std::printf("%s %s: %s\n", name, kvjit_status_name(error.status()), error.message());
}

/// Of the bundle that a compiler made, by a program without one.
kvjit::Result<void> step(kvjit::Engine& engine) {
    const auto kernel = engine.kernel(*kvjit::KernelSpec::parse(kvjit::test::kCallSpec));
    if (!kernel) return kernel.error();
    const kvjit::test::ApiCall call = kvjit::test::make_call(2, 1, 40);
    if (auto done = kvjit::test::plan_and_run(*kernel, call); !done) return done;
    std::printf("output %llu\n", static_cast<unsigned long long>(kvjit::test::output_hash(call)));
    return {};
}

/// Of a target whose kernels are to run.
void prepare(kvjit::Engine& engine, const char* name, const char* spec, const kvjit::Result<kvjit::Target>& target) {
    if (!target) return say_error(name, target.error());
    const auto kernel = engine.kernel(*kvjit::KernelSpec::parse(spec), *target);
    if (!kernel) return say_error(name, kernel.error());
    if (const auto done = kernel->prepare(); !done) say_error(name, done.error());
}

/// Of NVRTC, without a GPU.
void show_ptx(kvjit::Engine& engine) {
    const auto target = kvjit::Target::cuda("sm_90a");
    const auto kernel = engine.kernel(*kvjit::KernelSpec::parse(kvjit::test::kCallSpec), *target);
    const auto text = kernel->emit(KVJIT_STAGE_ASM, KVJIT_PROGRAM_DECODE);
    if (!text) say_error("nvrtc", text.error());
}

/// Whether an exception finds its way: code that was loaded has been told to the unwinder, or not.
bool unwinds() {
    try {
        throw std::runtime_error("thrown");
    } catch (const std::exception&) {
        return true;
    }
}

}  // namespace

int main() {
    kvjit::EngineOptions options;
    const char* cache = std::getenv("KVJIT_TEST_CACHE");
    options.cache_dir = cache != nullptr ? cache : "";
    auto engine = kvjit::Engine::create(options);
    if (!engine) return say_error("engine", engine.error()), 1;
    kvjit::Error error;
    if (kvjit_engine_add_bundle_memory(engine->get(), kernels_kvjb, kernels_kvjb_size, error.get()) != KVJIT_OK) {
        return say_error("bundle", error), 1;
    }
    if (const auto done = step(*engine); !done) return say_error("step", done.error()), 1;
    std::printf("unwinds %d\n", unwinds());
    prepare(*engine, "missing", "op=Merge,head_dim=24", kvjit::Target::host());
    prepare(*engine, "cuda", kvjit::test::kCallSpec, kvjit::Target::cuda_device(0));
    show_ptx(*engine);
    const kvjit_engine_stats stats = engine->stats();
    std::printf("compiles %lld\nbundle_hits %lld\n", static_cast<long long>(stats.compiles),
                static_cast<long long>(stats.bundle_hits));
}
