// The engine: from a program's identity to a loaded image, through memory, the disk cache and the compiler, in order.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "backend.h"
#include "generator/program.h"
#include "generator/render.h"
#include "image.h"
#include "log.h"
#include "store.h"

namespace kvjit::rt {

struct EngineOptions {
    bool jit = true;
    Backends backends;
    std::unique_ptr<Store> disk;  // null: none
    gen::TemplateReader templates;
    Log log;
};

/// Thread-safe. Shared by its kernels, which keep it alive.
class Engine : public std::enable_shared_from_this<Engine> {
public:
    explicit Engine(EngineOptions options);
    ~Engine();

    /// The handle for a spec; made at the first request. It keeps the engine alive. `target` is interned (targets.h).
    gen::Result<KernelPtr> kernel(const gen::KernelSpec& spec, const gen::Target& target);

    /// The program's image: from memory, the disk cache or the compiler. One compile per identity, however many ask;
    /// those who waited for a failing one get its error.
    gen::Result<ImagePtr> image(const gen::Program& program, const gen::Target& target);

    /// See kvjit_plan_create.
    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const kvjit_batch& batch,
                                            const kvjit_plan_options& options);

    /// Text of a stage, made anew (KVJIT_STAGE_*).
    gen::Result<std::string> emit(const gen::Program& program, const gen::Target& target, kvjit_stage stage);

    kvjit_engine_stats stats() const;

private:
    struct Slot;
    struct Request;
    struct KernelKey {
        gen::KernelSpec spec;
        const gen::Target* target;
        bool operator==(const KernelKey& other) const;
    };
    struct KernelHash {
        std::size_t operator()(const KernelKey& key) const;
    };

    /// Errors: KVJIT_BAD_TARGET where this build has none for it.
    gen::Result<Backend*> backend(const gen::Target& target) const;
    /// See Compiler::known_target.
    gen::Target known_target(const gen::Target& target) const;
    std::shared_ptr<Slot> slot(const std::string& identity);
    gen::Result<ImagePtr> produce(const gen::Program& program, const gen::Target& target);
    gen::Result<Request> request(const gen::Program& program, const gen::Target& target);
    gen::Result<ImagePtr> from_disk(const Request& request);
    gen::Result<ImagePtr> compile(const Request& request);
    gen::Result<ImagePtr> load(const Request& request, std::string_view object);

    EngineOptions options_;
    std::shared_mutex kernels_mutex_;
    std::unordered_map<KernelKey, std::unique_ptr<Kernel>, KernelHash> kernels_;
    std::mutex slots_mutex_;
    std::map<std::string, std::shared_ptr<Slot>, std::less<>> slots_;

    std::atomic<std::int64_t> compiles_{0}, disk_hits_{0}, memory_hits_{0};
    std::atomic<double> compile_seconds_{0}, disk_seconds_{0};
};

}  // namespace kvjit::rt
