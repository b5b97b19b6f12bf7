#include "c_struct.h"

#include <algorithm>

#include "environment.h"
#include "generator/score_rules.h"
#include "generator/spec.h"

namespace kvjit::rt {
namespace {

template <std::size_t N>
void copy_text(const std::string& text, char (&to)[N]) {
    const std::size_t size = std::min(text.size(), N - 1);
    std::copy_n(text.data(), size, to);
    to[size] = '\0';
}

}  // namespace

template <>
kvjit_spec defaults() {
    return gen::default_spec();
}

template <>
kvjit_engine_options defaults() {
    auto options = zeroed<kvjit_engine_options>();
    options.jit = -1;
    options.cache_max_bytes = rt::cache_max_bytes_of_environment();
    options.max_idle_kernels = 1024;
    options.amx = 1;
    options.count_runs = -1;
    return options;
}

template <>
kvjit_plan_options defaults() {
    auto options = zeroed<kvjit_plan_options>();
    options.spin_us = -1;
    return options;
}

template <>
kvjit_blocks_options defaults() {
    auto options = zeroed<kvjit_blocks_options>();
    options.spin_us = -1;
    return options;
}

template <>
kvjit_prepare_options defaults() {
    auto options = zeroed<kvjit_prepare_options>();
    options.programs = KVJIT_ALL_PROGRAMS;
    return options;
}

template <>
kvjit_batch defaults() {
    auto batch = zeroed<kvjit_batch>();
    batch.num_layers = 1;
    batch.num_repeat = 1;
    for (const gen::ScoreRule& rule : gen::kScoreRules) {
        gen::for_each_number(rule, [&](const auto& number) { batch.*number.given = number.none; });
    }
    return batch;
}

template <>
kvjit_relayout defaults() {
    auto relayout = zeroed<kvjit_relayout>();
    relayout.from_ranks = 1;
    relayout.to_ranks = 1;
    return relayout;
}

gen::Error not_initialised(std::string_view type, std::string_view name, std::size_t bytes) {
    const std::string argument = std::string(name) + ".struct_size";
    return {KVJIT_BAD_ARGUMENT,
            argument + " is 0; call " + std::string(type) + "_init on it before its fields are set",
            argument,
            0,
            static_cast<std::int64_t>(bytes),
            -1};
}

gen::Result<RelayoutRequest> read_relayout(const kvjit_relayout* given) {
    const gen::Result<kvjit_relayout> relayout = read_struct(given, "relayout");
    if (!relayout) return std::unexpected(relayout.error());
    const gen::Result<kvjit_batch> from = read_struct(relayout->from, "from");
    if (!from) return std::unexpected(from.error());
    const gen::Result<kvjit_batch> to = read_struct(relayout->to, "to");
    if (!to) return std::unexpected(to.error());
    return RelayoutRequest{*relayout, *from, *to};
}

gen::Result<PlanOptions> read_plan_options(const kvjit_plan_options* given) {
    const gen::Result<kvjit_plan_options> options = read_optional_struct(given, "options");
    if (!options) return std::unexpected(options.error());
    const gen::Result<kvjit_executor> executor = read_optional_struct(options->executor, "executor");
    if (!executor) return std::unexpected(executor.error());
    const gen::Result<kvjit_batch> host_batch = read_optional_struct(options->host_batch, "host_batch");
    if (!host_batch) return std::unexpected(host_batch.error());
    return PlanOptions{*options, *executor, *host_batch};
}

gen::Result<void> not_null(const void* pointer, const char* name) {
    if (pointer != nullptr) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, name, std::string(name) + " is null");
}

gen::Result<void> has_sink(kvjit_sink sink) {
    return not_null(reinterpret_cast<const void*>(sink), "sink");
}

kvjit_status report(const gen::Error& failure, kvjit_error* error) {
    if (error == nullptr || error->struct_size < kErrorBytes) return failure.status;
    error->status = failure.status;
    error->value = failure.value;
    error->limit = failure.limit;
    error->sequence = failure.sequence;
    copy_text(failure.argument, error->argument);
    copy_text(failure.message, error->message);
    return failure.status;
}

}  // namespace kvjit::rt
