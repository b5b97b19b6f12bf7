#include "cpu/host.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/TargetParser/Host.h>

#include "cpu/cpuid.h"

namespace kvjit::rt {
namespace {

gen::Target detect() {
    const CpuWords machine = read_cpu();
    gen::Target target{gen::Backend::kCpu, "x86_64-unknown-linux-gnu", llvm::sys::getHostCPUName().str(), {}, 0};
    for (const gen::X86Feature& feature : gen::x86_features()) {
        target.features.push_back((has_feature(machine, feature.name) ? "+" : "-") + std::string(feature.name));
    }
    return target;
}

}  // namespace

const gen::Target& host_target() {
    static const gen::Target target = detect();
    return target;
}

}  // namespace kvjit::rt
