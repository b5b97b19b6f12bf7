// The CPU, and the compiler for it.
#include "bundle/compiler_path.h"
#include "command/words.h"
#include "cpu/clang_compiler.h"
#include "cpu/host.h"
#include "doctor/finding.h"
#include "environment.h"
#include "generator/x86.h"
#include "processor.h"
#include "usable_cores.h"

namespace kvjit::tool {
namespace {

/// "AMD EPYC 9554"; "" where the system doesn't tell.
Finding amx_finding() {
    if (!gen::has_feature(rt::host_target().features, "amx-tile"))
        return {Health::kGood, "AMX", "the processor has none, or it is masked"};
    return {Health::kGood, "AMX",
            "there; a process asks the system for it when it loads the first program that uses tiles"};
}

}  // namespace

Findings examine_cpu() {
    const std::string name = processor_name();
    Findings findings = {
        {Health::kGood, "CPU", (name.empty() ? "" : name + ", ") + number_of(rt::usable_cores(), "usable core")},
        {Health::kGood, "target", gen::print_features(rt::host_target().features)}};
    findings.push_back(amx_finding());
    return findings;
}

#ifdef KVJIT_CPU_JIT
Findings examine_compiler() {
    const std::unique_ptr<rt::CpuCompiler> compiler = rt::make_compiler(compiler_path());
    constexpr std::string_view kSource = "extern \"C\" int one() { return 1; }\n";
    const auto made = compiler->compile(kSource, "doctor.cc", rt::host_target(), rt::CompileStage::kObject);
    if (made) return {{Health::kGood, "compiler", "Clang " KVJIT_LLVM_VERSION ", " + compiler->paths().front()}};
    if (made.error().status == KVJIT_OUT_OF_MEMORY)
        return {{Health::kProblem, "compiler", made.error().message, "raise the limit of address space (ulimit -v)"}};
    if (!rt::environment_text(rt::Variable::kCompiler).value_or("").empty()) {
        return {{Health::kProblem, "compiler", made.error().message,
                 "unset KVJIT_COMPILER, or set it to the libkvjit_compiler.so of this version"}};
    }
    const bool is_missing = made.error().status == KVJIT_COMPILER_MISSING;
    return {{is_missing ? Health::kNote : Health::kProblem, "compiler", made.error().message,
             is_missing ? "install libkvjit_compiler.so beside libkvjit, or serve kernels from bundles alone"
                        : "reinstall kvjit with its own compiler library"}};
}
#else
Findings examine_compiler() {
    return {{Health::kNote, "compiler", "this kvjit was built for GPUs alone (KVJIT_CPU_JIT=OFF)"}};
}
#endif

}  // namespace kvjit::tool
