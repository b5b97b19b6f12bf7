#include "handles.h"

#include <cstdlib>
#include <string_view>

#include "generator/target.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

void log_warnings(void*, int32_t level, const char* message) {
    if (level >= KVJIT_LOG_WARNING) complain(std::string("warning: ") + message);
}

void append(void* text, const char* piece, size_t size) {
    static_cast<std::string*>(text)->append(piece, size);
}

/// Where KVJIT_LOG is set, the library writes its log to standard error, warnings among it.
bool logs_by_itself() {
    const char* level = std::getenv("KVJIT_LOG");
    return level != nullptr && *level != 0;
}

kvjit_error no_error() {
    kvjit_error error;
    kvjit_error_init(&error);
    return error;
}

/// The emulator blames a kernel by this argument, and nothing else does with this status.
RunError run_error(const kvjit_error& error) {
    return {error_text(error), error.status == KVJIT_CUDA_ERROR && std::string_view(error.argument) == "kernel"};
}

bool is_of_the_machine(kvjit_status status) {
    return status == KVJIT_BAD_TARGET || status == KVJIT_CUDA_ERROR;
}

}  // namespace

std::string error_text(const kvjit_error& error) {
    return std::string(kvjit_status_name(static_cast<kvjit_status>(error.status))) + ": " + error.message;
}

Result<Engine> open_engine(const KernelSources& sources, bool count_runs, const std::string& record) {
    kvjit_engine_options options;
    kvjit_engine_options_init(&options);
    options.cache_dir = sources.cache_dir ? sources.cache_dir->c_str() : nullptr;
    if (!sources.template_dir.empty()) options.template_dir = sources.template_dir.c_str();
    if (!logs_by_itself()) options.log = log_warnings;
    options.record = record.c_str();  // $KVJIT_RECORD is for engines: a replay isn't recorded
    options.count_runs = count_runs ? 1 : 0;
    kvjit_engine* made = nullptr;
    kvjit_error error = no_error();
    if (kvjit_engine_create(&options, &made, &error) != KVJIT_OK) return fail(error_text(error));
    Engine engine(made);
    for (const std::string& path : sources.bundles) {
        if (kvjit_engine_add_bundle(engine.get(), path.c_str(), &error) != KVJIT_OK) return fail(error_text(error));
    }
    return engine;
}

Result<Target> open_target(const std::string& name) {
    kvjit_target* target = nullptr;
    kvjit_error error = no_error();
    if (kvjit_target_create(name.c_str(), &target, &error) != KVJIT_OK) return fail(escaped(error_text(error)));
    return Target(target);
}

std::string target_text(const kvjit_target* target) {
    std::string text;
    kvjit_target_print(target, append, &text);
    return text;
}

std::string target_option(const std::string& text) {
    const auto target = gen::parse_target(text);
    if (!target) return text;
    return target->backend == gen::Backend::kCudaEmulated ? "cuda-emulated" : target->name();
}

bool is_cuda(const std::string& name) {
    return name.starts_with("cuda") || name.starts_with("sm_");
}

Result<Kernel> open_kernel(kvjit_engine* engine, const kvjit_spec& spec, const kvjit_target* target) {
    kvjit_kernel* kernel = nullptr;
    kvjit_error error = no_error();
    if (kvjit_engine_kernel(engine, &spec, target, &kernel, &error) != KVJIT_OK) return fail(error_text(error));
    return Kernel(kernel);
}

Result<void> try_target(kvjit_engine* engine, const kvjit_target* target) {
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    spec.op = KVJIT_OP_MERGE;
    const auto kernel = open_kernel(engine, spec, target);
    if (!kernel) return fail(kernel.error());
    kvjit_error error = no_error();
    const kvjit_status status = kvjit_kernel_prepare(kernel->get(), KVJIT_PROGRAM_MERGE, &error);
    if (is_of_the_machine(status)) return fail(error_text(error));
    return {};
}

Result<Plan> make_plan(kvjit_kernel* kernel, const kvjit_batch& batch, const kvjit_plan_options& options) {
    kvjit_plan* plan = nullptr;
    kvjit_error error = no_error();
    if (kvjit_plan_create(kernel, &batch, &options, &plan, &error) != KVJIT_OK) return fail(error_text(error));
    return Plan(plan);
}

Result<void> in_words(const RunResult<void>& ran) {
    if (!ran) return fail(ran.error().why);
    return {};
}

RunResult<void> start_plan(kvjit_plan* plan, const kvjit_tensors& tensors, std::int64_t layer) {
    kvjit_error error = no_error();
    if (kvjit_run(plan, &tensors, layer, &error) != KVJIT_OK) return std::unexpected(run_error(error));
    return {};
}

RunResult<void> finish_plan(kvjit_plan* plan) {
    kvjit_error error = no_error();
    if (kvjit_plan_synchronize(plan, &error) != KVJIT_OK) return std::unexpected(run_error(error));
    return {};
}

Result<kvjit_spec> parse_spec(const std::string& text) {
    kvjit_error error = no_error();
    kvjit_spec spec;
    if (kvjit_spec_parse(text.c_str(), &spec, &error) != KVJIT_OK) return fail(escaped(error_text(error)));
    return spec;
}

Result<std::string> spec_text(const kvjit_spec& spec) {
    std::string text;
    kvjit_error error = no_error();
    if (kvjit_spec_print(&spec, append, &text, &error) != KVJIT_OK) return fail(error_text(error));
    return text;
}

}  // namespace kvjit::tool
