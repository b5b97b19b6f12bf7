// The C entry points of kvjit.h that need handles: targets, engines, kernels, plans. The others are in c_values.cc.
#include <atomic>
#include <tuple>

#include "bundle/signature.h"
#include "c_struct.h"
#include "check/arithmetic.h"
#include "check/fault.h"
#include "disk_cache/disk_store.h"
#include "engine.h"
#include "environment.h"
#include "kvjit/kvjit.h"
#include "plan.h"
#include "prepare.h"
#include "record/call_record.h"
#include "relayout/relayout_plan.h"
#include "run_watch.h"
#include "targets.h"

using namespace kvjit;

struct kvjit_target {
    const gen::TargetList* targets;
};

struct kvjit_engine {
    std::shared_ptr<rt::Engine> engine;
};

struct kvjit_kernel {
    rt::KernelPtr kernel;
    std::atomic<int> references{1};
};

struct kvjit_plan {
    std::unique_ptr<rt::Plan> plan;
    rt::RunWatch watch;
    rt::CallRecord record{};
};

namespace {

gen::Result<bool> jit_setting(std::int32_t option) {
    if (option < -1 || option > 1) return rt::refuse(KVJIT_BAD_ARGUMENT, "jit", option, 1, "it takes -1, 0 or 1");
    return option >= 0 ? option == 1 : rt::jit_of_environment();
}

rt::Log callers_log(const kvjit_engine_options& options) {
    if (options.log == nullptr) return {};
    const auto tell = [log = options.log, context = options.log_context](
                          kvjit_log_level level, const std::string& message) { log(context, level, message.c_str()); };
    return {tell, static_cast<kvjit_log_level>(options.log_level)};
}

rt::Log make_log(const kvjit_engine_options& options) {
    return rt::both(callers_log(options), rt::standard_error_log(rt::log_level_of_environment()));
}

/// Who sets a variable expects something of it, and may not know the program's log: where there is none, a mistake goes
/// to standard error.
rt::Log log_of_environment(const rt::Log& log) {
    return log.takes(KVJIT_LOG_WARNING) ? log : rt::standard_error_log(KVJIT_LOG_WARNING);
}

std::unique_ptr<rt::Cache> open_disk(const kvjit_engine_options& options, const rt::Log& log) {
    if (options.cache_dir != nullptr && *options.cache_dir == '\0') return nullptr;
    rt::DiskStoreOptions disk;
    if (options.cache_dir != nullptr) disk.folder = options.cache_dir;
    disk.max_bytes = options.cache_max_bytes;
    disk.log = log;
    return rt::open_disk_store(disk);
}

gen::Result<std::optional<rt::PublicKey>> bundle_key_setting(const char* option) {
    if (option == nullptr) return std::nullopt;
    const std::optional<rt::PublicKey> key = rt::parse_public_key(option);
    if (key) return key;
    return gen::fail(
        KVJIT_BAD_ARGUMENT, "bundle_key",
        "bundle_key is \"" + std::string(option) +
            "\"; it takes the 64 hexadecimal digits of an Ed25519 public key, not all 0, as kvjit bundle sign and list "
            "print them");
}

rt::LateCompile make_late_compile(const kvjit_engine_options& options) {
    if (options.on_late_compile == nullptr) return nullptr;
    return [told = options.on_late_compile, context = options.late_compile_context](
               const std::string& spec, const std::string& program) { told(context, spec.c_str(), program.c_str()); };
}

/// An engine's log, and the one for what the environment asks for.
struct Logs {
    const rt::Log& engine;
    const rt::Log& environment;

    const rt::Log& of(const char* option) const { return option != nullptr ? engine : environment; }
};

/// Null: specs are not traced.
std::shared_ptr<rt::SpecTrace> open_trace(const kvjit_engine_options& options, const Logs& logs) {
    const std::string path = options.trace_specs != nullptr
                                 ? options.trace_specs
                                 : rt::environment_text(rt::Variable::kTraceSpecs).value_or("");
    return path.empty() ? nullptr : std::make_shared<rt::SpecTrace>(path, logs.of(options.trace_specs));
}

/// A setting of the environment that isn't understood has been reported, and records nothing.
gen::Result<std::shared_ptr<rt::Recorder>> open_recorder(const kvjit_engine_options& options, const Logs& logs) {
    auto recorder = std::make_shared<rt::Recorder>(logs.of(options.record));
    if (options.record == nullptr) {
        std::ignore = recorder->set(rt::environment_text(rt::Variable::kRecord).value_or(""));
    } else if (auto set = recorder->set(options.record); !set) {
        return std::unexpected(set.error());
    }
    return recorder;
}

gen::Result<void> check_engine_options(const kvjit_engine_options& given) {
    if (auto right = rt::check_range("cache_max_bytes", given.cache_max_bytes, 0, rt::kMaxInt64); !right) return right;
    if (auto right = rt::check_range("max_idle_kernels", given.max_idle_kernels, 0, rt::kMaxInt64); !right)
        return right;
    if (given.amx < 0 || given.amx > 1) {
        return rt::refuse(KVJIT_BAD_ARGUMENT, "amx", given.amx, 1, "it takes 0 or 1");
    }
    if (given.count_runs < -1 || given.count_runs > 1) {
        return rt::refuse(KVJIT_BAD_ARGUMENT, "count_runs", given.count_runs, 1, "it takes -1, 0 or 1");
    }
    if (given.log_level < KVJIT_LOG_TRACE || given.log_level > KVJIT_LOG_WARNING) {
        return rt::refuse(KVJIT_BAD_ARGUMENT, "log_level", given.log_level,
                          given.log_level < 0 ? KVJIT_LOG_TRACE : KVJIT_LOG_WARNING,
                          "it takes a kvjit_log_level, -2 to 1");
    }
    return {};
}

/// Refuses before anything is opened or said.
gen::Result<std::shared_ptr<rt::Engine>> make_engine(const kvjit_engine_options& given) {
    const gen::Result<bool> jit = jit_setting(given.jit);
    if (!jit) return std::unexpected(jit.error());
    if (auto right = check_engine_options(given); !right) return std::unexpected(right.error());
    const gen::Result<std::optional<rt::PublicKey>> key = bundle_key_setting(given.bundle_key);
    if (!key) return std::unexpected(key.error());
    const std::string templates = given.template_dir != nullptr
                                      ? given.template_dir
                                      : rt::environment_text(rt::Variable::kTemplateDir).value_or("");
    rt::ImagesOptions images;
    images.jit = *jit;
    images.log = make_log(given);
    const rt::Log environment_log = log_of_environment(images.log);
    const Logs logs = {images.log, environment_log};
    gen::Result<std::shared_ptr<rt::Recorder>> recorder = open_recorder(given, logs);
    if (!recorder) return std::unexpected(recorder.error());
    images.recorder = *std::move(recorder);
    rt::report_environment(environment_log);
    images.backends = rt::make_backends(
        {.compiler = given.compiler != nullptr ? given.compiler : "", .templates = templates, .log = environment_log});
    images.disk = open_disk(given, images.log);
    images.on_late_compile = make_late_compile(given);
    images.trace = open_trace(given, logs);
    images.count_runs = given.count_runs < 0 ? rt::is_switched_on(rt::Variable::kCountRuns) : given.count_runs == 1;
    images.tiles = given.amx != 0 ? &rt::TilePermission::of_process() : nullptr;
    images.templates = gen::templates_of(templates);
    return std::make_shared<rt::Engine>(
        rt::EngineOptions{std::move(images), static_cast<std::size_t>(given.max_idle_kernels), *key});
}

/// The specs of a caller's array, each of `spec_size` bytes.
gen::Result<std::vector<gen::KernelSpec>> read_specs(const kvjit_spec* specs, std::size_t count,
                                                     std::size_t spec_size) {
    if (count == 0) return {};
    if (auto given = rt::not_null(specs, "specs"); !given) return std::unexpected(given.error());
    if (!rt::ends_field<kvjit_spec>(spec_size)) {
        return rt::refuse(KVJIT_BAD_ARGUMENT, "spec_size", static_cast<std::int64_t>(spec_size), sizeof(kvjit_spec),
                          rt::text("in this library's header a kvjit_spec has ", sizeof(kvjit_spec),
                                   " bytes, in older ones it ends where a field does"));
    }
    if (spec_size % alignof(kvjit_spec) != 0) {
        return rt::refuse(KVJIT_BAD_ARGUMENT, "spec_size", static_cast<std::int64_t>(spec_size), alignof(kvjit_spec),
                          "specs stand side by side, so it takes a multiple of 4");
    }
    std::vector<gen::KernelSpec> all;
    for (std::size_t i = 0; i < count; ++i) {
        const auto* at = reinterpret_cast<const char*>(specs) + i * spec_size;
        const auto& given = *reinterpret_cast<const kvjit_spec*>(at);
        const std::string name = rt::text("specs[", i, "]");
        if (given.struct_size > spec_size) {
            return rt::refuse(KVJIT_BAD_ARGUMENT, name + ".struct_size", given.struct_size,
                              static_cast<std::int64_t>(spec_size),
                              rt::text("the array's specs have ", spec_size, " bytes each"));
        }
        const gen::Result<gen::KernelSpec> spec = rt::read_struct(&given, name);
        if (!spec) return std::unexpected(spec.error());
        all.push_back(*spec);
    }
    return all;
}

/// `total`: specs to prepare.
gen::Result<rt::PrepareOptions> read_prepare_options(const kvjit_prepare_options* given, std::size_t total) {
    const gen::Result<kvjit_prepare_options> read = rt::read_optional_struct(given, "options");
    if (!read) return std::unexpected(read.error());
    if (read->num_threads < 0) {
        return rt::refuse(KVJIT_BAD_ARGUMENT, "num_threads", read->num_threads, 0, "it takes at least 0");
    }
    rt::PrepareOptions options{read->programs, read->num_threads, nullptr};
    if (read->progress == nullptr) return options;
    options.progress = [progress = read->progress, context = read->progress_context, total](
                           std::size_t done, const gen::KernelSpec& spec, const gen::Error* failure) {
        kvjit_error error;
        kvjit_error_init(&error);
        if (failure != nullptr) rt::report(*failure, &error);
        progress(context, static_cast<std::int64_t>(done), static_cast<std::int64_t>(total),
                 gen::print_spec(spec).c_str(), failure != nullptr ? &error : nullptr);
    };
    return options;
}

void send(const std::string& text, kvjit_sink sink, void* context) {
    sink(context, text.data(), text.size());
}

/// `size`: of the caller's kvjit_image_info.
void tell(const rt::KernelImage& image, std::size_t size, void (*told)(void*, const kvjit_image_info*), void* context) {
    const std::string name = rt::image_name(image.program->info->name, image.identity);
    const std::string variant(image.program->variant->name), target = image.target->text();
    kvjit_image_info info{};
    info.struct_size = static_cast<std::uint32_t>(size);
    info.program = image.program->info->bit;
    info.is_loaded = image.is_loaded ? 1 : 0;
    info.revision = image.program->variant->revision;
    info.name = name.c_str();
    info.variant = variant.c_str();
    info.target = target.c_str();
    info.identity = image.identity.c_str();
    info.place = "";
    info.block_threads = image.program->launch.threads;
    info.shared_bytes = image.program->launch.shared_bytes;
    if (image.origin) {
        info.origin = image.origin->kind;
        info.object_bytes = static_cast<std::int64_t>(image.origin->object_bytes);
        info.place = image.origin->stored.place.c_str();
    }
    told(context, &info);
}

/// Null stands for this machine.
gen::Result<const gen::TargetList*> targets_of(const kvjit_target* target) {
    return target != nullptr ? target->targets : rt::find_targets("host");
}

/// The batch with arrays in host memory; null: only the device has them.
const kvjit_batch* host_batch(const rt::Kernel& kernel, const kvjit_batch& batch, const kvjit_plan_options& options) {
    if (options.host_batch != nullptr) return options.host_batch;
    return kernel.target().backend == gen::Backend::kCuda ? nullptr : &batch;
}

}  // namespace

kvjit_status kvjit_target_create(const char* name, kvjit_target** target, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(name, "name"); !given) return given;
        if (auto given = rt::not_null(target, "target"); !given) return given;
        const gen::Result<const gen::TargetList*> found = rt::find_targets(name);
        if (!found) return std::unexpected(found.error());
        *target = new kvjit_target{*found};
        return {};
    });
}

void kvjit_target_release(kvjit_target* target) {
    delete target;
}

void kvjit_target_list(void (*row)(void*, const char*, const char*), void* context) {
    if (row == nullptr) return;
    rt::attempt([&] {
        for (const rt::TargetRow& each : rt::target_rows()) row(context, each.name.c_str(), each.help.c_str());
    });
}

void kvjit_target_print(const kvjit_target* target, kvjit_sink sink, void* context) {
    if (target == nullptr || sink == nullptr) return;
    rt::attempt([&] { send(target->targets->front().text(), sink, context); });
}

kvjit_status kvjit_engine_create(const kvjit_engine_options* options, kvjit_engine** engine, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(engine, "engine"); !given) return given;
        const gen::Result<kvjit_engine_options> read = rt::read_optional_struct(options, "options");
        if (!read) return std::unexpected(read.error());
        gen::Result<std::shared_ptr<rt::Engine>> made = make_engine(*read);
        if (!made) return std::unexpected(made.error());
        *engine = new kvjit_engine{*std::move(made)};
        return {};
    });
}

void kvjit_engine_release(kvjit_engine* engine) {
    if (engine == nullptr) return;
    const rt::NoFork stays;
    delete engine;
}

kvjit_status kvjit_engine_add_bundle(kvjit_engine* engine, const char* path, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(engine, "engine"); !given) return given;
        if (auto given = rt::not_null(path, "path"); !given) return given;
        return engine->engine->add_bundle("bundle " + (*path == '\0' ? std::string("\"\"") : path), path,
                                          rt::open_bundle_file(path));
    });
}

kvjit_status kvjit_engine_add_bundle_memory(kvjit_engine* engine, const void* bundle, size_t size, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(engine, "engine"); !given) return given;
        if (auto given = rt::not_null(bundle, "bundle"); !given) return given;
        const std::string_view bytes(static_cast<const char*>(bundle), size);
        const std::string place = std::to_string(size) + " bytes in memory";
        return engine->engine->add_bundle("the bundle of " + place, place, rt::bundle_in_memory(bytes));
    });
}

size_t kvjit_engine_trim(kvjit_engine* engine) {
    size_t dropped = 0;
    rt::attempt([&] {
        if (engine != nullptr) dropped = engine->engine->trim();
    });
    return dropped;
}

void kvjit_engine_seal(kvjit_engine* engine) {
    if (engine != nullptr) engine->engine->seal();
}

kvjit_status kvjit_engine_record(kvjit_engine* engine, const char* setting, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(engine, "engine"); !given) return given;
        return engine->engine->record(setting != nullptr ? setting : "");
    });
}

kvjit_status kvjit_engine_prepare_sized(kvjit_engine* engine, const kvjit_spec* specs, size_t count,
                                        const kvjit_target* target, const kvjit_prepare_options* options,
                                        size_t spec_size, kvjit_error* error) {
    return rt::guarded_long(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(engine, "engine"); !given) return given;
        const gen::Result<std::vector<gen::KernelSpec>> read = read_specs(specs, count, spec_size);
        if (!read) return std::unexpected(read.error());
        const gen::Result<rt::PrepareOptions> how = read_prepare_options(options, count);
        if (!how) return std::unexpected(how.error());
        const gen::Result<const gen::TargetList*> wanted = targets_of(target);
        if (!wanted) return std::unexpected(wanted.error());
        return rt::prepare_all(*engine->engine, *read, **wanted, *how);
    });
}

void kvjit_engine_get_stats(const kvjit_engine* engine, kvjit_engine_stats* stats) {
    if (engine == nullptr || stats == nullptr) return;
    if (stats->struct_size < sizeof *stats && !rt::ends_field<kvjit_engine_stats>(stats->struct_size)) return;
    const rt::NoFork stays;
    rt::write_struct(stats, stats->struct_size, engine->engine->stats());
}

kvjit_status kvjit_engine_run_stats_sized(const kvjit_engine* engine,
                                          void (*row)(void* context, const char* spec, const char* target,
                                                      const kvjit_run_stats* stats),
                                          void* context, size_t size, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(engine, "engine"); !given) return given;
        if (auto given = rt::not_null(reinterpret_cast<const void*>(row), "row"); !given) return given;
        if (auto right = rt::check_size<kvjit_run_stats>(size, "stats"); !right) return right;
        for (const auto& [kernel, counted] : engine->engine->counted_runs()) {
            kvjit_run_stats stats;
            rt::write_struct(&stats, std::min(size, sizeof stats), counted);
            row(context, gen::print_spec(kernel->spec()).c_str(), rt::target_option(kernel->target()).c_str(), &stats);
        }
        return {};
    });
}

kvjit_status kvjit_engine_kernel(kvjit_engine* engine, const kvjit_spec* spec, const kvjit_target* target,
                                 kvjit_kernel** kernel, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(engine, "engine"); !given) return given;
        if (auto given = rt::not_null(kernel, "kernel"); !given) return given;
        const gen::Result<gen::KernelSpec> read = rt::read_struct(spec, "spec");
        if (!read) return std::unexpected(read.error());
        const gen::Result<const gen::TargetList*> wanted = targets_of(target);
        if (!wanted) return std::unexpected(wanted.error());
        gen::Result<rt::KernelPtr> found = engine->engine->kernel(*read, **wanted);
        if (!found) return std::unexpected(found.error());
        *kernel = new kvjit_kernel{*std::move(found)};
        return {};
    });
}

kvjit_status kvjit_engine_explain(kvjit_engine* engine, const kvjit_spec* spec, const kvjit_target* target,
                                  uint32_t programs, kvjit_sink sink, void* context, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(engine, "engine"); !given) return given;
        if (auto given = rt::has_sink(sink); !given) return given;
        const gen::Result<gen::KernelSpec> read = rt::read_struct(spec, "spec");
        if (!read) return std::unexpected(read.error());
        const gen::Result<const gen::TargetList*> wanted = targets_of(target);
        if (!wanted) return std::unexpected(wanted.error());
        const gen::Result<rt::Explanation> explained = engine->engine->explain(*read, **wanted, programs);
        if (!explained) return std::unexpected(explained.error());
        send(explained->text, sink, context);
        return explained->served;
    });
}

kvjit_kernel* kvjit_kernel_retain(kvjit_kernel* kernel) {
    if (kernel != nullptr) kernel->references.fetch_add(1, std::memory_order_relaxed);
    return kernel;
}

void kvjit_kernel_release(kvjit_kernel* kernel) {
    if (kernel == nullptr || kernel->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const rt::NoFork stays;
    delete kernel;
}

kvjit_status kvjit_kernel_prepare(kvjit_kernel* kernel, uint32_t programs, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(kernel, "kernel"); !given) return given;
        const gen::Result<rt::ImageSet> ready = kernel->kernel->prepare(programs);
        if (!ready) return std::unexpected(ready.error());
        return {};
    });
}

kvjit_status kvjit_kernel_emit(kvjit_kernel* kernel, uint32_t programs, kvjit_stage stage, kvjit_sink sink,
                               void* context, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(kernel, "kernel"); !given) return given;
        if (auto given = rt::has_sink(sink); !given) return given;
        if (stage < KVJIT_STAGE_IDENTITY || stage > KVJIT_STAGE_IR_UNOPTIMISED) {
            return rt::refuse(KVJIT_BAD_ARGUMENT, "stage", stage, KVJIT_STAGE_IR_UNOPTIMISED, "it takes 0 to 6");
        }
        const gen::Result<std::string> text = kernel->kernel->emit(programs, stage);
        if (!text) return std::unexpected(text.error());
        send(*text, sink, context);
        return {};
    });
}

kvjit_status kvjit_kernel_images_sized(kvjit_kernel* kernel, uint32_t programs,
                                       void (*image)(void*, const kvjit_image_info*), void* context, size_t size,
                                       kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(kernel, "kernel"); !given) return given;
        if (auto given = rt::not_null(reinterpret_cast<const void*>(image), "image"); !given) return given;
        if (auto right = rt::check_size<kvjit_image_info>(size, "info"); !right) return right;
        const gen::Result<std::vector<rt::KernelImage>> images = kernel->kernel->images(programs);
        if (!images) return std::unexpected(images.error());
        for (const rt::KernelImage& each : *images) tell(each, size, image, context);
        return {};
    });
}

kvjit_status kvjit_plan_create(kvjit_kernel* kernel, const kvjit_batch* batch, const kvjit_plan_options* options,
                               kvjit_plan** plan, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(kernel, "kernel"); !given) return given;
        if (auto given = rt::not_null(plan, "plan"); !given) return given;
        const gen::Result<kvjit_batch> read = rt::read_struct(batch, "batch");
        if (!read) return std::unexpected(read.error());
        const gen::Result<rt::PlanOptions> how = rt::read_plan_options(options);
        if (!how) return std::unexpected(how.error());
        if (auto right = rt::check_no_relayout(*kernel->kernel); !right) return right;
        const gen::Result<rt::Backend*> backend = kernel->kernel->backend();
        if (!backend) return std::unexpected(backend.error());
        const rt::PlanWatch watch(*kernel->kernel);
        gen::Result<std::unique_ptr<rt::Plan>> made = (*backend)->plan(kernel->kernel, *read, how->pointing());
        if (!made) return std::unexpected(made.error());
        watch.tell(**made, read->batch_size);
        rt::RunWatch runs(kernel->kernel, **made, host_batch(*kernel->kernel, *read, how->pointing()));
        *plan = new kvjit_plan{
            *std::move(made), std::move(runs), {kernel->kernel->recorder(), *kernel->kernel, *read, how->options}};
        return {};
    });
}

kvjit_status kvjit_relayout_plan_create(kvjit_kernel* kernel, const kvjit_relayout* relayout,
                                        const kvjit_plan_options* options, kvjit_plan** plan, kvjit_error* error) {
    return rt::guarded(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(kernel, "kernel"); !given) return given;
        if (auto given = rt::not_null(plan, "plan"); !given) return given;
        const gen::Result<rt::RelayoutRequest> read = rt::read_relayout(relayout);
        if (!read) return std::unexpected(read.error());
        const gen::Result<rt::PlanOptions> how = rt::read_plan_options(options);
        if (!how) return std::unexpected(how.error());
        if (auto right = rt::check_relayout_kernel(*kernel->kernel, how->options); !right) return right;
        const gen::Result<rt::Backend*> backend = kernel->kernel->backend();
        if (!backend) return std::unexpected(backend.error());
        const rt::PlanWatch watch(*kernel->kernel);
        gen::Result<std::unique_ptr<rt::Plan>> made = (*backend)->plan(kernel->kernel, *read, how->pointing());
        if (!made) return std::unexpected(made.error());
        watch.tell(**made, read->from.batch_size);
        rt::RunWatch runs(kernel->kernel, **made, nullptr);
        *plan = new kvjit_plan{*std::move(made), std::move(runs)};
        return {};
    });
}

kvjit_status kvjit_relayout_run(kvjit_plan* plan, const kvjit_tensors* from, int64_t from_layer,
                                const kvjit_tensors* to, int64_t to_layer, kvjit_error* error) {
    return rt::guarded_long(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(plan, "plan"); !given) return given;
        const gen::Result<kvjit_tensors> read = rt::read_struct(from, "from");
        if (!read) return std::unexpected(read.error());
        const gen::Result<kvjit_tensors> written = rt::read_struct(to, "to");
        if (!written) return std::unexpected(written.error());
        const auto run = [&] { return plan->plan->relayout(*read, from_layer, *written, to_layer); };
        return plan->watch.is_on() ? plan->watch.run(nullptr, from_layer, run) : run();
    });
}

void kvjit_plan_release(kvjit_plan* plan) {
    if (plan == nullptr) return;
    const rt::NoFork stays;
    delete plan;
}

kvjit_status kvjit_plan_synchronize(kvjit_plan* plan, kvjit_error* error) {
    return rt::guarded_long(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(plan, "plan"); !given) return given;
        return plan->plan->synchronize();
    });
}

size_t kvjit_plan_workspace_bytes(const kvjit_plan* plan) {
    return plan != nullptr ? plan->plan->workspace_bytes() : 0;
}

void kvjit_plan_describe(const kvjit_plan* plan, kvjit_sink sink, void* context) {
    if (plan == nullptr || sink == nullptr) return;
    rt::attempt([&] { send(plan->plan->describe(), sink, context); });
}

kvjit_status kvjit_run(kvjit_plan* plan, const kvjit_tensors* tensors, int64_t layer_idx, kvjit_error* error) {
    return rt::guarded_long(error, [&]() -> gen::Result<void> {
        if (auto given = rt::not_null(plan, "plan"); !given) return given;
        const gen::Result<kvjit_tensors> read = rt::read_struct(tensors, "tensors");
        if (!read) return std::unexpected(read.error());
        const auto run = [&] {
            rt::Recording* recording = plan->record.recording();
            if (recording != nullptr) return plan->record.run(*recording, *plan->plan, *read, layer_idx);
            return plan->plan->run(*read, layer_idx);
        };
        return plan->watch.is_on() ? plan->watch.run(&*read, layer_idx, run) : run();
    });
}
