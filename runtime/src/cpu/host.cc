#include "cpu/host.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>

namespace kvjit::rt {
namespace {

// A hypervisor may mask a feature and keep another that implies it. The compiler would switch the first one on again,
// so the second one goes too.
bool usable(llvm::StringRef feature, const llvm::StringMap<bool>& machine) {
    llvm::StringMap<bool> implied;
    llvm::X86::updateImpliedFeatures(feature, true, implied);
    return machine.lookup(feature) && std::ranges::all_of(implied, [&](const auto& entry) {
               const bool known = std::ranges::any_of(gen::x86_features(), [&](const gen::X86Feature& candidate) {
                   return entry.getKey() == llvm::StringRef(candidate.name);
               });
               return !known || machine.lookup(entry.getKey());
           });
}

gen::Target detect() {
    const llvm::StringMap<bool> machine = llvm::sys::getHostCPUFeatures();
    gen::Target target{gen::Backend::kCpu, "x86_64-unknown-linux-gnu", llvm::sys::getHostCPUName().str(), {}, 0};
    for (const gen::X86Feature& feature : gen::x86_features()) {
        target.features.push_back((usable(feature.name, machine) ? "+" : "-") + std::string(feature.name));
    }
    return target;
}

}  // namespace

const gen::Target& host_target() {
    static const gen::Target target = detect();
    return target;
}

}  // namespace kvjit::rt
