#include "environment.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "generator/nearest.h"
#include "record/setting.h"

namespace kvjit::rt {
namespace {

constexpr std::string_view kPrefix = "KVJIT_";

bool is_anything(std::string_view) {
    return true;
}

bool is_on_or_off(std::string_view value) {
    return value == "on" || value == "off";
}

bool is_switch(std::string_view value) {
    return value == "0" || value == "1";
}

bool is_perf(std::string_view value) {
    return is_switch(value) || value == "jitdump";
}

bool is_debug(std::string_view value) {
    return is_switch(value) || value == "frames";
}

std::optional<std::uint64_t> as_number(std::string_view value) {
    std::uint64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [stopped, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || stopped != end) return std::nullopt;
    return number;
}

bool is_number(std::string_view value) {
    return as_number(value).has_value();
}

std::optional<std::int64_t> as_bytes(std::string_view value) {
    const std::optional<std::uint64_t> number = as_number(value);
    if (!number || *number > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    return static_cast<std::int64_t>(*number);
}

bool is_bytes(std::string_view value) {
    return as_bytes(value).has_value();
}

bool is_mask(std::string_view value) {
    return gen::parse_mask(value).has_value();
}

bool is_record_setting(std::string_view value) {
    return parse_record_setting(value).has_value();
}

std::string why_no_record_setting(std::string_view value) {
    const auto setting = parse_record_setting(value, "KVJIT_RECORD");
    return setting ? "" : setting.error().message;
}

bool is_log_level(std::string_view value) {
    return parse_log_level(value).has_value();
}

constexpr VariableInfo kVariables[] = {
    {Variable::kJit, "KVJIT_JIT", "on or off", is_on_or_off, "engines with jit = -1 are refused"},
    {Variable::kCacheDir, "KVJIT_CACHE_DIR", "a folder", is_anything, ""},
    {Variable::kCacheMaxBytes, "KVJIT_CACHE_MAX_BYTES", "a number of bytes from 0 to 2^63-1", is_bytes,
     "it counts as 512 MiB"},
    {Variable::kTemplateDir, "KVJIT_TEMPLATE_DIR", "a folder", is_anything, ""},
    {Variable::kCompiler, "KVJIT_COMPILER", "a file", is_anything, ""},
    {Variable::kNvrtc, "KVJIT_NVRTC", "a file", is_anything, ""},
    {Variable::kLineInfo, "KVJIT_LINE_INFO", "0 or 1", is_switch, "it counts as 0"},
    {Variable::kEmulationSeed, "KVJIT_EMULATION_SEED", "a number from 0 to 2^64-1", is_number,
     "cuda-emulated is refused"},
    {Variable::kPerf, "KVJIT_PERF", "0, 1 or jitdump", is_perf, "it counts as 0"},
    {Variable::kTraceSpecs, "KVJIT_TRACE_SPECS", "a file", is_anything, ""},
    {Variable::kCpuMask, "KVJIT_CPU_MASK", "CPU features beyond x86-64's, with commas, as avx512bf16,avx512vnni",
     is_mask, "no feature is taken away"},
    {Variable::kRecord, "KVJIT_RECORD", "DIR or DIR:name=value,... as docs/recording.md has them", is_record_setting,
     "nothing is recorded", why_no_record_setting},
    {Variable::kLog, "KVJIT_LOG", "warning, info, debug or trace", is_log_level, "it counts as warning"},
    {Variable::kDebug, "KVJIT_DEBUG", "0, 1 or frames", is_debug, "it counts as 0"},
    {Variable::kCountRuns, "KVJIT_COUNT_RUNS", "0 or 1", is_switch, "it counts as 0"},
};

/// Prefixes of names that belong to kvjit's build and tests, which a process may inherit from them.
constexpr std::string_view kOthers[] = {"KVJIT_BOLT",         "KVJIT_BUILD_",  "KVJIT_CONFORMANCE_",
                                        "KVJIT_CPU_COMPILER", "KVJIT_CPU_JIT", "KVJIT_TEST_"};

const VariableInfo& info(Variable variable) {
    return kVariables[static_cast<std::size_t>(variable)];
}

std::string not_taken(const VariableInfo& variable, const std::string& value) {
    if (variable.why_not != nullptr) return variable.why_not(value);
    return std::string(variable.name) + " is \"" + value + "\"; it takes " + variable.takes;
}

void report_value(const VariableInfo& variable, const Log& log) {
    const std::string value = environment_text(variable.name).value_or("");
    if (value.empty() || variable.is_legal(value)) return;
    log(KVJIT_LOG_WARNING, not_taken(variable, value) + ": " + variable.otherwise);
}

/// "" if the variable is empty or not set. Errors: `status`.
gen::Result<std::string> legal_text(Variable variable, kvjit_status status) {
    const VariableInfo& row = info(variable);
    std::string value = environment_text(variable).value_or("");
    if (value.empty() || row.is_legal(value)) return value;
    return gen::fail(status, row.name, not_taken(row, value));
}

std::string_view nearest_name(std::string_view name) {
    std::vector<std::string_view> names;
    for (const VariableInfo& variable : kVariables) names.emplace_back(variable.name);
    return gen::nearest_word(name, names);
}

bool is_known(std::string_view name) {
    return std::ranges::any_of(kVariables, [&](const VariableInfo& known) { return name == known.name; });
}

bool is_of_others(std::string_view name) {
    return std::ranges::any_of(kOthers, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// `entry`: NAME=VALUE.
void report_name(std::string_view entry, const Log& log) {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix) || is_known(name) || is_of_others(name)) return;
    log(KVJIT_LOG_WARNING, std::string(name) + " in the environment does nothing: kvjit has no such variable; the " +
                               "nearest is " + std::string(nearest_name(name)));
}

}  // namespace

std::span<const VariableInfo> environment_variables() {
    return kVariables;
}

std::optional<std::string> environment_text(const char* name) {
    const char* value = secure_getenv(name);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<std::string> environment_text(Variable variable) {
    return environment_text(info(variable).name);
}

bool is_switched_on(Variable variable) {
    return environment_text(variable) == "1";
}

gen::Result<bool> jit_of_environment() {
    const gen::Result<std::string> text = legal_text(Variable::kJit, KVJIT_BAD_ARGUMENT);
    if (!text) return std::unexpected(text.error());
    return *text != "off";
}

std::int64_t cache_max_bytes_of_environment() {
    constexpr std::int64_t kOtherwise = std::int64_t{512} << 20;
    // Without an allocation: where options are initialised no error could be told.
    const char* value = secure_getenv(info(Variable::kCacheMaxBytes).name);
    return as_bytes(value != nullptr ? value : "").value_or(kOtherwise);
}

gen::Result<std::uint64_t> seed_of_environment() {
    const gen::Result<std::string> text = legal_text(Variable::kEmulationSeed, KVJIT_CUDA_ERROR);
    if (!text) return std::unexpected(text.error());
    return as_number(*text).value_or(1);
}

CodeStyle code_style_of_environment() {
    const std::string text = environment_text(Variable::kDebug).value_or("");
    if (text == "frames") return CodeStyle::kFrames;
    return text == "1" ? CodeStyle::kLocals : CodeStyle::kOptimised;
}

gen::X86Features cpu_mask_of_environment() {
    return gen::parse_mask(environment_text(Variable::kCpuMask).value_or("")).value_or(gen::X86Features());
}

std::optional<kvjit_log_level> log_level_of_environment() {
    const std::string text = environment_text(Variable::kLog).value_or("");
    if (text.empty()) return std::nullopt;
    return parse_log_level(text).value_or(KVJIT_LOG_WARNING);  // which the mistake is reported as
}

void report_environment(const Log& log) {
    if (getauxval(AT_SECURE) != 0) return;
    for (const VariableInfo& variable : kVariables) report_value(variable, log);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) report_name(*entry, log);
}

}  // namespace kvjit::rt
