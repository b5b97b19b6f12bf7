// What an engine says: kvjit prints nothing, and calls the program's own log instead. Here the folder that was to keep
// kernels can't be one, which is no error: kernels are then kept in memory alone, and the log says so once.
#include <cstdio>
#include <mutex>

#include "kvjit/kvjit.hpp"

int main() try {
    std::mutex mutex;  // the log is called on the thread that has something to say: on several at once
    int warnings = 0;
    const auto log = [&](kvjit_log_level level, const char* message) {
        const std::lock_guard<std::mutex> lock(mutex);
        warnings += level == KVJIT_LOG_WARNING;
        std::printf("%s: %s\n", level == KVJIT_LOG_WARNING ? "warning" : "info", message);
    };
    kvjit::EngineOptions options;
    options.cache_dir = "/dev/null/kernels";
    options.set_log(log);  // not copied: it lives as long as the engine, its kernels and plans

    const auto engine = kvjit::Engine::create(options).value();
    for (const char* text : {"op=KeyValueCache,head_dim=64,t1=f32", "op=KeyValueCache,head_dim=128,t1=f32"}) {
        engine.kernel(kvjit::KernelSpec::parse(text).value()).value().prepare(KVJIT_PROGRAM_STORE).value();
    }
    std::printf("warnings: %d, compiled: %d\n", warnings, static_cast<int>(engine.stats().compiles));
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
