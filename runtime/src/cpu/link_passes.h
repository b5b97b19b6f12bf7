// Plugins of ORC's object layer that add passes over a graph, and those that every object of kvjit's goes through.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

namespace kvjit::rt {

/// Adds passes to each link. Has no state.
class PassesPlugin : public llvm::orc::ObjectLinkingLayer::Plugin {
public:
    llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility&) final { return llvm::Error::success(); }
    llvm::Error notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey) final {
        return llvm::Error::success();
    }
    void notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey, llvm::orc::ResourceKey) final {}
};

/// Refuses what JITLink would link wrongly, or by resolving symbols in the process: code of another machine, undefined
/// symbols, relocations outside of their sections. Preserves every function's name, for profilers.
std::shared_ptr<PassesPlugin> make_link_passes();

}  // namespace kvjit::rt
