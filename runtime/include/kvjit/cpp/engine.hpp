// Where kernels run, and who finds, compiles and keeps them. Part of kvjit.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "kvjit/cpp/kernel.hpp"
#include "kvjit/cpp/spec.hpp"

namespace kvjit {

/// Where kernels run. See kvjit_target_create. Move-only.
class Target {
public:
    /// Takes over.
    explicit Target(kvjit_target* raw) : handle_(raw) {}

    static Result<Target> host() { return create("host"); }
    /// "x86-64-v3", "x86-64-v4-amx", "x86-64-v3+avxvnni" (see kvjit_target_create): works on any machine.
    static Result<Target> cpu(const std::string& name) { return create(name); }
    /// "sm_80", "sm_90a", ...: whatever GPU this machine has, if any.
    static Result<Target> cuda(const std::string& architecture) { return create(architecture); }
    /// The GPU of this ordinal.
    static Result<Target> cuda_device(int ordinal) { return create("cuda:" + std::to_string(ordinal)); }
    /// CUDA kernels on this machine's CPU, slow and checked: for tests and debugging.
    static Result<Target> cuda_emulated() { return create("cuda-emulated"); }

    std::string text() const {
        detail::Told out;
        kvjit_target_print(get(), detail::callback(out), &out);
        return out.text;
    }
    kvjit_target* get() const { return handle_.get(); }

private:
    static Result<Target> create(const std::string& name) {
        return detail::make<Target>(kvjit_target_create, detail::Text{"name", name});
    }
    detail::Handle<kvjit_target, kvjit_target_release> handle_;
};

/// See kvjit_engine_options. Callables are not copied: they live as long as the engine and all its kernels and plans. A
/// temporary is taken where it holds nothing, as a lambda without captures. They are called on several threads at once,
/// must not call kvjit for this engine, and must not throw: the process then ends by std::terminate.
struct EngineOptions : kvjit_engine_options {
    EngineOptions() { kvjit_engine_options_init(this); }

    /// Calls f(kvjit_log_level level, const char* message).
    template <class F>
    EngineOptions& set_log(F&& f) {
        auto& lasting = detail::lasting(std::forward<F>(f));
        log = [](void* context, std::int32_t level, const char* message) noexcept {
            (*reinterpret_cast<decltype(&lasting)>(context))(static_cast<kvjit_log_level>(level), message);
        };
        log_context = detail::context_of(lasting);
        return *this;
    }
    /// Calls f(const char* spec, const char* program).
    template <class F>
    EngineOptions& set_on_late_compile(F&& f) {
        auto& lasting = detail::lasting(std::forward<F>(f));
        on_late_compile = detail::callback(lasting);
        late_compile_context = detail::context_of(lasting);
        return *this;
    }
};

/// See kvjit_prepare_options.
struct PrepareOptions : kvjit_prepare_options {
    PrepareOptions() { kvjit_prepare_options_init(this); }

    /// Calls f(std::int64_t done, std::int64_t total, const char* spec, const kvjit_error* failure), on one thread at a
    /// time. As the callables of EngineOptions; it lives until Engine::prepare has returned.
    template <class F>
    PrepareOptions& set_progress(F&& f) {
        auto& lasting = detail::lasting(std::forward<F>(f));
        progress = detail::callback(lasting);
        progress_context = detail::context_of(lasting);
        return *this;
    }
};

/// What the runs of one kernel came to.
struct RunStats : kvjit_run_stats {
    std::string spec, target;
};

/// Finds, compiles and keeps kernels. A handle: a const one, too, does all of it. Thread-safe; move-only.
class Engine {
public:
    /// Takes over.
    explicit Engine(kvjit_engine* raw) : handle_(raw) {}

    static Result<Engine> create(const kvjit_engine_options& options = EngineOptions()) {
        return detail::make<Engine>(kvjit_engine_create, &options);
    }
    /// For this machine.
    Result<Kernel> kernel(const kvjit_spec& spec) const { return find(spec, nullptr); }
    Result<Kernel> kernel(const kvjit_spec& spec, const Target& target) const {
        if (target.get() == nullptr) return moved_from();
        return find(spec, target.get());
    }
    /// Prepares the kernels of all specs at once, for this machine. See kvjit_engine_prepare.
    Result<void> prepare(const std::vector<KernelSpec>& specs,
                         const kvjit_prepare_options& options = PrepareOptions()) const {
        return prepare_on(nullptr, specs, options);
    }
    Result<void> prepare(const std::vector<KernelSpec>& specs, const Target& target,
                         const kvjit_prepare_options& options = PrepareOptions()) const {
        if (target.get() == nullptr) return moved_from();
        return prepare_on(target.get(), specs, options);
    }
    /// From now on each compile is late: counted, and told. See kvjit_engine_seal.
    void seal() const { kvjit_engine_seal(get()); }
    kvjit_engine_stats stats() const {
        kvjit_engine_stats stats;
        kvjit_engine_stats_init(&stats);
        kvjit_engine_get_stats(get(), &stats);
        return stats;
    }
    /// Of each kernel that has run, where runs are counted: the one that took most time first. See
    /// kvjit_engine_run_stats.
    Result<std::vector<RunStats>> run_stats() const {
        std::vector<RunStats> all;
        const auto add = [&all](const char* spec, const char* target, const kvjit_run_stats* stats) {
            all.push_back({*stats, spec, target});
        };
        auto told = detail::call(kvjit_engine_run_stats, get(), detail::callback(add), detail::context_of(add));
        if (!told) return told.error();
        return all;
    }
    /// Records calls for `kvjit replay` from now on: "DIR", or "DIR:name=value,..."; "" ends it. See
    /// kvjit_engine_record.
    Result<void> record(const std::string& setting) const {
        return detail::call(kvjit_engine_record, get(), detail::Text{"setting", setting});
    }
    /// Which algorithm serves each program, and why those before it don't: into `text`, also where the error says that
    /// there is no kernel. See kvjit_engine_explain.
    Result<void> explain(const kvjit_spec& spec, const Target& target, std::string& text,
                         std::uint32_t programs = KVJIT_ALL_PROGRAMS) const {
        if (target.get() == nullptr) return moved_from();
        detail::Told out;
        auto told =
            detail::call(kvjit_engine_explain, get(), &spec, target.get(), programs, detail::callback(out), &out);
        text = std::move(out.text);
        return told;
    }
    /// Kernels made at build time; see kvjit_engine_add_bundle.
    Result<void> add_bundle(const std::string& path) const {
        return detail::call(kvjit_engine_add_bundle, get(), detail::Text{"path", path});
    }
    /// Not copied: see kvjit_engine_add_bundle_memory.
    Result<void> add_bundle(const void* bundle, std::size_t size) const {
        return detail::call(kvjit_engine_add_bundle_memory, get(), bundle, size);
    }
    /// Drops the kernels that nobody holds; how many (see kvjit_engine_trim).
    std::size_t trim() const { return kvjit_engine_trim(get()); }
    kvjit_engine* get() const { return handle_.get(); }

private:
    /// A null target would be this machine.
    static Error moved_from() {
        return {KVJIT_BAD_ARGUMENT, "target", "target was moved from; it takes one that is there"};
    }
    Result<Kernel> find(const kvjit_spec& spec, const kvjit_target* target) const {
        auto raw = detail::fill<kvjit_kernel*>(kvjit_engine_kernel, get(), &spec, target);
        if (!raw) return raw.error();
        return Kernel(*raw, spec.starts_type);
    }
    Result<void> prepare_on(const kvjit_target* target, const std::vector<KernelSpec>& specs,
                            const kvjit_prepare_options& options) const {
        return detail::call(kvjit_engine_prepare_sized, get(), specs.data(), specs.size(), target, &options,
                            sizeof(KernelSpec));
    }
    detail::Handle<kvjit_engine, kvjit_engine_release> handle_;
};

}  // namespace kvjit
