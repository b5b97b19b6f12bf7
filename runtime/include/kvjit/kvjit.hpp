// kvjit for C++17: ownership and Result over the C ABI of kvjit.h, which documents what everything does. Header-only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kvjit/kvjit.h"

namespace kvjit {

/// Why a call was refused. See kvjit_error.
class Error {
public:
    Error() { kvjit_error_init(&error_); }
    /// For errors of a program's own; texts that don't fit are cut.
    Error(kvjit_status status, const char* argument, const char* message, std::int64_t value = 0,
          std::int64_t limit = 0)
        : Error() {
        error_.status = status;
        error_.value = value;
        error_.limit = limit;
        std::snprintf(error_.argument, sizeof error_.argument, "%s", argument);
        std::snprintf(error_.message, sizeof error_.message, "%s", message);
    }
    kvjit_status status() const { return static_cast<kvjit_status>(error_.status); }
    const char* message() const { return error_.message; }
    const char* argument() const { return error_.argument; }
    std::int64_t value() const { return error_.value; }
    std::int64_t limit() const { return error_.limit; }
    std::int64_t sequence() const { return error_.sequence; }
    /// For C calls that take a kvjit_error*.
    kvjit_error* get() { return &error_; }

private:
    kvjit_error error_;
};

namespace detail {

/// An Error on the heap that copies share: what isn't there costs a pointer. Where memory ends, it is an Error that
/// says so.
class SharedError {
public:
    SharedError() = default;
    explicit SharedError(const Error& error) : held_(new(std::nothrow) Held{error, {1}}) {
        if (held_ == nullptr) held_ = out_of_memory();
    }
    /// Copying is all there is, so that a Result that was moved from still has its Error.
    SharedError(const SharedError& other) noexcept : held_(other.held_) {
        if (held_ != nullptr) held_->owners.fetch_add(1, std::memory_order_relaxed);
    }
    SharedError& operator=(SharedError other) noexcept {
        std::swap(held_, other.held_);
        return *this;
    }
    ~SharedError() {
        if (held_ != nullptr && held_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete held_;
    }
    explicit operator bool() const { return held_ != nullptr; }
    const Error& operator*() const { return held_->error; }

private:
    struct Held {
        Error error;
        std::atomic<long> owners;
    };
    /// Owned by itself, too: nobody deletes it.
    static Held* out_of_memory() {
        static Held held{Error(KVJIT_OUT_OF_MEMORY, "memory", "out of memory, and none for the error that was met"),
                         {1}};
        held.owners.fetch_add(1, std::memory_order_relaxed);
        return &held;
    }
    Held* held_ = nullptr;
};

}  // namespace detail

#if defined(__cpp_exceptions)
/// What Result::value() throws where there is none: what() is the Error's message.
class Exception : public std::runtime_error {
public:
    explicit Exception(const detail::SharedError& error) : std::runtime_error((*error).message()), error_(error) {}
    const Error& error() const noexcept { return *error_; }
    kvjit_status status() const noexcept { return error().status(); }

private:
    detail::SharedError error_;
};
#endif

namespace detail {

[[noreturn]] inline void no_value(const SharedError& error) {
#if defined(__cpp_exceptions)
    throw Exception(error);
#else
    static_cast<void>(error);
    std::abort();
#endif
}

}  // namespace detail

/// A value or an Error, shaped like std::expected. An Error is allocated when there is one; success pays nothing for
/// it.
template <class T>
class [[nodiscard]] Result {
public:
    using value_type = T;
    using error_type = Error;

    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(const Error& error) : state_(std::in_place_index<1>, error) {}

    bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }
    /// Precondition of the next five: has_value(). Of a Result that ends with its expression the value itself is handed
    /// out, so that it lives on where it is bound: for (const auto& one : *kernel.images()).
    T& operator*() & { return *std::get_if<0>(&state_); }
    const T& operator*() const& { return *std::get_if<0>(&state_); }
    T operator*() && { return std::move(*std::get_if<0>(&state_)); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }
    /// Without a value: throws Exception. Where exceptions are switched off (-fno-exceptions), calls std::abort.
    T& value() & { return demand(), **this; }
    const T& value() const& { return demand(), **this; }
    T value() && { return demand(), *std::move(*this); }
    /// Precondition: !has_value(). As long as this Result, or a copy of it.
    const Error& error() const { return **std::get_if<1>(&state_); }

private:
    void demand() const {
        if (!has_value()) detail::no_value(*std::get_if<1>(&state_));
    }
    std::variant<T, detail::SharedError> state_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;
    using error_type = Error;

    Result() = default;
    Result(const Error& error) : error_(error) {}

    bool has_value() const { return !error_; }
    explicit operator bool() const { return has_value(); }
    /// After a failure as Result<T>'s.
    void value() const {
        if (error_) detail::no_value(error_);
    }
    /// Precondition: !has_value(). As long as this Result, or a copy of it.
    const Error& error() const { return *error_; }

private:
    detail::SharedError error_;
};

namespace detail {

inline void append(void* text, const char* piece, std::size_t size) {
    static_cast<std::string*>(text)->append(piece, size);
}

/// A unique handle of the C ABI.
template <class T, void (*kRelease)(T*)>
class Handle {
public:
    Handle() = default;
    explicit Handle(T* raw) : raw_(raw) {}
    Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { kRelease(raw_); }
    T* get() const { return raw_; }

private:
    T* raw_ = nullptr;
};

}  // namespace detail

/// What a kernel computes. The fields are kvjit_spec's; the constructor fills in the defaults.
struct KernelSpec : kvjit_spec {
    KernelSpec() { kvjit_spec_init(this); }

    /// "op=MultiHeadCacheAttention,head_dim=128,group=4,layout=L2HTD,quant_bit=8". See kvjit_spec_parse.
    static Result<KernelSpec> parse(const std::string& text) {
        KernelSpec spec;
        Error error;
        if (kvjit_spec_parse(text.c_str(), &spec, error.get()) != KVJIT_OK) return error;
        return spec;
    }

    /// This spec for another op, without what means nothing there. See kvjit_spec_for_op.
    Result<KernelSpec> for_op(kvjit_op other) const {
        KernelSpec spec;
        Error error;
        if (kvjit_spec_for_op(this, other, &spec, error.get()) != KVJIT_OK) return error;
        return spec;
    }

    /// Of a relayout between caches of two specs. See kvjit_relayout_spec.
    static Result<KernelSpec> relayout(const kvjit_spec& from, const kvjit_spec& to) {
        KernelSpec spec;
        Error error;
        if (kvjit_relayout_spec(&from, &to, &spec, error.get()) != KVJIT_OK) return error;
        return spec;
    }

    /// The canonical text. Errors: KVJIT_BAD_SPEC.
    Result<std::string> text() const {
        std::string out;
        Error error;
        if (kvjit_spec_print(this, detail::append, &out, error.get()) != KVJIT_OK) return error;
        return out;
    }

    /// Sets the cache's axis order, "L2HTD" say. Longer than 15 characters is cut, and refused when the spec is used.
    KernelSpec& set_layout(const char* axes) {
        std::size_t i = 0;
        for (; i + 1 < sizeof layout && axes[i] != '\0'; ++i) layout[i] = axes[i];
        for (; i < sizeof layout; ++i) layout[i] = '\0';
        return *this;
    }
};

/// What a text with a spec a line stands for. See kvjit_spec_list_parse.
struct SpecList {
    /// A combination of values that is no legal spec.
    struct LeftOut {
        std::int64_t line;
        std::string combination;
        std::string reason;
    };
    std::vector<KernelSpec> specs;
    std::vector<LeftOut> left_out;

    static Result<SpecList> parse(const std::string& text, std::int64_t max_combinations = KVJIT_MAX_COMBINATIONS) {
        SpecList list;
        Error error;
        const auto take = [](void* to, std::int64_t, const kvjit_spec* spec) {
            KernelSpec taken;
            static_cast<kvjit_spec&>(taken) = *spec;
            static_cast<SpecList*>(to)->specs.push_back(taken);
        };
        const auto leave_out = [](void* to, std::int64_t line, const char* combination, const char* reason) {
            static_cast<SpecList*>(to)->left_out.push_back({line, combination, reason});
        };
        if (kvjit_spec_list_parse(text.c_str(), max_combinations, take, leave_out, &list, error.get()) != KVJIT_OK) {
            return error;
        }
        return list;
    }
};

/// A view of the caller's memory.
struct Tensor : kvjit_tensor {
    /// Absent.
    Tensor() : kvjit_tensor{} {}
    /// Row-major.
    Tensor(void* memory, kvjit_dtype type, std::initializer_list<std::int64_t> extents)
        : kvjit_tensor(
              kvjit_tensor_contiguous(memory, type, static_cast<std::int32_t>(extents.size()), extents.begin())) {}
    Tensor(const void* memory, kvjit_dtype type, std::initializer_list<std::int64_t> extents)
        : Tensor(const_cast<void*>(memory), type, extents) {}
};

struct Batch : kvjit_batch {
    Batch() { kvjit_batch_init(this); }
};

struct Tensors : kvjit_tensors {
    Tensors() { kvjit_tensors_init(this); }
};

/// Which tokens of which cache go where. The batches are the caller's.
struct Relayout : kvjit_relayout {
    Relayout(const kvjit_batch& source, const kvjit_batch& destination) {
        kvjit_relayout_init(this);
        from = &source;
        to = &destination;
    }
};

struct PlanOptions : kvjit_plan_options {
    PlanOptions() { kvjit_plan_options_init(this); }
};

struct EngineOptions : kvjit_engine_options {
    EngineOptions() { kvjit_engine_options_init(this); }
};

/// The image of one of a kernel's programs. See kvjit_image_info.
struct ImageInfo {
    kvjit_programs program;
    kvjit_origin origin;
    bool is_loaded;
    int revision;
    std::int64_t object_bytes;
    std::string name, variant, target, identity, place;
};

struct PrepareOptions : kvjit_prepare_options {
    PrepareOptions() { kvjit_prepare_options_init(this); }
};

/// Where kernels run. See kvjit_target_create.
class Target {
public:
    static Result<Target> host() { return create("host"); }
    /// "x86-64-v3", "x86-64-v4-amx", "x86-64-v3+avxvnni" (see kvjit_target_create): works on any machine.
    static Result<Target> cpu(const std::string& name) { return create(name.c_str()); }
    /// "sm_80", "sm_90a", ...: whatever GPU this machine has, if any.
    static Result<Target> cuda(const std::string& architecture) { return create(architecture.c_str()); }
    /// The GPU of this ordinal.
    static Result<Target> cuda_device(int ordinal) { return create(("cuda:" + std::to_string(ordinal)).c_str()); }
    /// CUDA kernels on this machine's CPU, slow and checked: for tests and debugging.
    static Result<Target> cuda_emulated() { return create("cuda-emulated"); }

    std::string text() const {
        std::string out;
        kvjit_target_print(handle_.get(), detail::append, &out);
        return out;
    }
    const kvjit_target* get() const { return handle_.get(); }

private:
    static Result<Target> create(const char* name) {
        Error error;
        kvjit_target* raw = nullptr;
        if (kvjit_target_create(name, &raw, error.get()) != KVJIT_OK) return error;
        return Target(raw);
    }
    explicit Target(kvjit_target* raw) : handle_(raw) {}
    detail::Handle<kvjit_target, kvjit_target_release> handle_;
};

/// One step's batch, checked and split; runs on every layer. Move-only; one thread at a time.
class Plan {
public:
    Result<void> run(const kvjit_tensors& tensors, std::int64_t layer_idx = 0) {
        Error error;
        if (kvjit_run(handle_.get(), &tensors, layer_idx, error.get()) != KVJIT_OK) return error;
        return {};
    }
    /// Of a relayout's plan. See kvjit_relayout_run.
    Result<void> relayout(const kvjit_tensors& from, const kvjit_tensors& to, std::int64_t from_layer = 0,
                          std::int64_t to_layer = 0) {
        Error error;
        if (kvjit_relayout_run(handle_.get(), &from, from_layer, &to, to_layer, error.get()) != KVJIT_OK) return error;
        return {};
    }
    /// Waits for the runs so far; see kvjit_plan_synchronize.
    Result<void> synchronize() {
        Error error;
        if (kvjit_plan_synchronize(handle_.get(), error.get()) != KVJIT_OK) return error;
        return {};
    }
    std::size_t workspace_bytes() const { return kvjit_plan_workspace_bytes(handle_.get()); }
    std::string describe() const {
        std::string out;
        kvjit_plan_describe(handle_.get(), detail::append, &out);
        return out;
    }
    kvjit_plan* get() const { return handle_.get(); }

private:
    friend class Kernel;
    explicit Plan(kvjit_plan* raw) : handle_(raw) {}
    detail::Handle<kvjit_plan, kvjit_plan_release> handle_;
};

/// A cheap, thread-safe, reference-counted handle.
class Kernel {
public:
    Kernel(const Kernel& other) : handle_(kvjit_kernel_retain(other.get())) {}
    Kernel(Kernel&&) = default;
    Kernel& operator=(Kernel other) {
        handle_ = std::move(other.handle_);
        return *this;
    }

    Result<void> prepare(std::uint32_t programs = KVJIT_ALL_PROGRAMS) const {
        Error error;
        if (kvjit_kernel_prepare(get(), programs, error.get()) != KVJIT_OK) return error;
        return {};
    }
    Result<Plan> plan(const kvjit_batch& batch, const kvjit_plan_options& options = PlanOptions()) const {
        Error error;
        kvjit_plan* raw = nullptr;
        if (kvjit_plan_create(get(), &batch, &options, &raw, error.get()) != KVJIT_OK) return error;
        return Plan(raw);
    }
    /// Of a kernel of op Relayout. See kvjit_relayout_plan_create.
    Result<Plan> plan(const kvjit_relayout& relayout, const kvjit_plan_options& options = PlanOptions()) const {
        Error error;
        kvjit_plan* raw = nullptr;
        if (kvjit_relayout_plan_create(get(), &relayout, &options, &raw, error.get()) != KVJIT_OK) return error;
        return Plan(raw);
    }
    Result<std::string> emit(kvjit_stage stage, std::uint32_t programs = KVJIT_ALL_PROGRAMS) const {
        std::string out;
        Error error;
        if (kvjit_kernel_emit(get(), programs, stage, detail::append, &out, error.get()) != KVJIT_OK) return error;
        return out;
    }
    /// What each of the programs runs, or would run, and where that is from. See kvjit_kernel_images.
    Result<std::vector<ImageInfo>> images(std::uint32_t programs = KVJIT_ALL_PROGRAMS) const {
        std::vector<ImageInfo> all;
        Error error;
        const auto take = [](void* to, const kvjit_image_info* info) {
            static_cast<std::vector<ImageInfo>*>(to)->push_back(
                {static_cast<kvjit_programs>(info->program), static_cast<kvjit_origin>(info->origin),
                 info->is_loaded != 0, info->revision, info->object_bytes, info->name, info->variant, info->target,
                 info->identity, info->place});
        };
        if (kvjit_kernel_images(get(), programs, take, &all, error.get()) != KVJIT_OK) return error;
        return all;
    }
    kvjit_kernel* get() const { return handle_.get(); }

private:
    friend class Engine;
    explicit Kernel(kvjit_kernel* raw) : handle_(raw) {}
    detail::Handle<kvjit_kernel, kvjit_kernel_release> handle_;
};

/// Finds, compiles and keeps kernels. Thread-safe; move-only.
class Engine {
public:
    static Result<Engine> create(const kvjit_engine_options& options = EngineOptions()) {
        Error error;
        kvjit_engine* raw = nullptr;
        if (kvjit_engine_create(&options, &raw, error.get()) != KVJIT_OK) return error;
        return Engine(raw);
    }
    /// For this machine.
    Result<Kernel> kernel(const kvjit_spec& spec) const { return find(spec, nullptr); }
    Result<Kernel> kernel(const kvjit_spec& spec, const Target& target) const { return find(spec, target.get()); }
    /// Prepares the kernels of all specs at once, for this machine. See kvjit_engine_prepare.
    Result<void> prepare(const std::vector<KernelSpec>& specs,
                         const kvjit_prepare_options& options = PrepareOptions()) const {
        return prepare_on(nullptr, specs, options);
    }
    Result<void> prepare(const std::vector<KernelSpec>& specs, const Target& target,
                         const kvjit_prepare_options& options = PrepareOptions()) const {
        return prepare_on(target.get(), specs, options);
    }
    /// From now on each compile is late: counted, and told. See kvjit_engine_seal.
    void seal() { kvjit_engine_seal(get()); }
    kvjit_engine_stats stats() const {
        kvjit_engine_stats stats;
        kvjit_engine_stats_init(&stats);
        kvjit_engine_get_stats(get(), &stats);
        return stats;
    }
    /// Which algorithm serves each program, and why those before it don't: into `text`, also where the error says that
    /// there is no kernel. See kvjit_engine_explain.
    Result<void> explain(const kvjit_spec& spec, const Target& target, std::string& text,
                         std::uint32_t programs = KVJIT_ALL_PROGRAMS) const {
        Error error;
        text.clear();
        const auto status =
            kvjit_engine_explain(get(), &spec, target.get(), programs, detail::append, &text, error.get());
        if (status != KVJIT_OK) return error;
        return {};
    }
    /// Kernels made at build time; see kvjit_engine_add_bundle.
    Result<void> add_bundle(const std::string& path) {
        Error error;
        if (kvjit_engine_add_bundle(get(), path.c_str(), error.get()) != KVJIT_OK) return error;
        return {};
    }
    /// Not copied: see kvjit_engine_add_bundle_memory.
    Result<void> add_bundle(const void* bundle, std::size_t size) {
        Error error;
        if (kvjit_engine_add_bundle_memory(get(), bundle, size, error.get()) != KVJIT_OK) return error;
        return {};
    }
    /// Drops the kernels that nobody holds; how many (see kvjit_engine_trim).
    std::size_t trim() { return kvjit_engine_trim(get()); }
    kvjit_engine* get() const { return handle_.get(); }

private:
    explicit Engine(kvjit_engine* raw) : handle_(raw) {}
    Result<Kernel> find(const kvjit_spec& spec, const kvjit_target* target) const {
        Error error;
        kvjit_kernel* raw = nullptr;
        if (kvjit_engine_kernel(get(), &spec, target, &raw, error.get()) != KVJIT_OK) return error;
        return Kernel(raw);
    }
    Result<void> prepare_on(const kvjit_target* target, const std::vector<KernelSpec>& specs,
                            const kvjit_prepare_options& options) const {
        Error error;
        if (kvjit_engine_prepare_sized(get(), specs.data(), specs.size(), target, &options, sizeof(KernelSpec),
                                       error.get()) != KVJIT_OK) {
            return error;
        }
        return {};
    }
    detail::Handle<kvjit_engine, kvjit_engine_release> handle_;
};

/// What differs between two texts of KVJIT_STAGE_IDENTITY, in words. See kvjit_identity_diff.
inline Result<std::string> diff_identities(const std::string& before, const std::string& after) {
    std::string text;
    Error error;
    if (kvjit_identity_diff(before.c_str(), after.c_str(), detail::append, &text, error.get()) != KVJIT_OK) {
        return error;
    }
    return text;
}

}  // namespace kvjit
