// All environment variables of kvjit. Only this code reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "generator/error.h"
#include "generator/x86.h"
#include "log.h"

namespace kvjit::rt {

/// In the order of the table.
enum class Variable {
    kJit,
    kCacheDir,
    kCacheMaxBytes,
    kTemplateDir,
    kCompiler,
    kNvrtc,
    kLineInfo,
    kEmulationSeed,
    kPerf,
    kTraceSpecs,
    kCpuMask,
    kRecord,
    kLog,
    kDebug,
    kCountRuns
};

struct VariableInfo {
    Variable variable;
    const char* name;
    const char* takes;  // completes "it takes"
    bool (*is_legal)(std::string_view value);
    const char* otherwise;  // what a value does that it does not take
    /// What is wrong with a value, by the variable's name; null: that it is none of what the variable takes.
    std::string (*why_not)(std::string_view value) = nullptr;
};

/// The table. docs/compiling.md says what each variable is for.
std::span<const VariableInfo> environment_variables();

/// The value of any variable, kvjit's or not; nullopt if it isn't set. For a set-user-id program none is set: its
/// environment can't be trusted.
std::optional<std::string> environment_text(const char* name);
std::optional<std::string> environment_text(Variable variable);

/// Whether a variable that takes 0 and 1 is 1.
bool is_switched_on(Variable variable);

/// What KVJIT_JIT says. Errors: KVJIT_BAD_ARGUMENT.
gen::Result<bool> jit_of_environment();

/// What KVJIT_CACHE_MAX_BYTES says; 512 MiB where it isn't set or not understood.
std::int64_t cache_max_bytes_of_environment();

/// What KVJIT_EMULATION_SEED says; 1 where it isn't set. Errors: KVJIT_CUDA_ERROR.
gen::Result<std::uint64_t> seed_of_environment();

/// What KVJIT_DEBUG says of the code of CPU kernels and of emulated ones.
enum class CodeStyle {
    kOptimised,
    kFrames,  // optimised, with frame pointers
    kLocals   // as the templates are written, so that debuggers see every variable
};
CodeStyle code_style_of_environment();

/// What KVJIT_CPU_MASK says; nothing where it isn't understood.
gen::X86Features cpu_mask_of_environment();

/// What KVJIT_LOG says; nothing where it isn't set.
std::optional<kvjit_log_level> log_level_of_environment();

/// Warns of each variable whose value is not understood, and of each that begins with KVJIT_ and is not of kvjit's.
void report_environment(const Log& log);

}  // namespace kvjit::rt
