#include "cpu/collector_plugin.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/Debugging/DebugInfoSupport.h>

#include <map>
#include <utility>
#include <vector>

#include "cpu/function_name.h"

namespace kvjit::rt {
namespace {

namespace jitlink = llvm::jitlink;
namespace object = llvm::object;
namespace orc = llvm::orc;

using Methods = std::vector<JitMethod>;

const llvm::DILineInfoSpecifier kWhole(llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath);

object::SectionedAddress at(std::uint64_t address) {
    return {address, object::SectionedAddress::UndefSection};
}

/// Where the function that is written out there is at this address, not one that was inlined into it. Line 0: unknown.
llvm::DILineInfo source_at(llvm::DWARFContext& debug, std::uint64_t address) {
    const llvm::DIInliningInfo frames = debug.getInliningInfoForAddress(at(address), kWhole);
    return frames.getNumberOfFrames() == 0 ? llvm::DILineInfo() : frames.getFrame(frames.getNumberOfFrames() - 1);
}

/// Neighbours of one line become one entry.
void add_line(JitMethod& method, std::uint32_t number, std::uint32_t end) {
    if (number == 0) return;
    if (!method.lines.empty() && method.lines.back().number == number) {
        method.lines.back().end = end;
    } else {
        method.lines.push_back({end, number});
    }
}

/// File and lines.
void add_source(JitMethod& method, llvm::DWARFContext& debug) {
    const auto begin = reinterpret_cast<std::uint64_t>(method.address);
    const llvm::DILineInfoTable rows = debug.getLineInfoForAddressRange(at(begin), method.bytes, kWhole);
    if (rows.empty()) return;
    method.file = source_at(debug, begin).FileName;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::uint64_t end = i + 1 < rows.size() ? rows[i + 1].first : begin + method.bytes;
        add_line(method, source_at(debug, rows[i].first).Line, static_cast<std::uint32_t>(end - begin));
    }
}

Methods methods_of(jitlink::LinkGraph& graph) {
    auto debug = orc::createDWARFContext(graph);  // its buffers come with it
    if (!debug) llvm::consumeError(debug.takeError());
    Methods methods;
    for (const jitlink::Symbol* symbol : graph.defined_symbols()) {
        if (!symbol->hasName() || !symbol->isCallable() || symbol->getSize() == 0) continue;
        JitMethod& method = methods.emplace_back();
        method.name = shown_name(graph.getName(), symbol->getName().str());
        method.address = symbol->getAddress().toPtr<const void*>();
        method.bytes = static_cast<std::uint32_t>(symbol->getSize());
        if (debug) add_source(method, *debug->first);
    }
    return methods;
}

class CollectorPlugin final : public orc::ObjectLinkingLayer::Plugin {
public:
    explicit CollectorPlugin(const JitCollector& collector) : collector_(collector) {}

    void modifyPassConfig(orc::MaterializationResponsibility&, jitlink::LinkGraph&,
                          jitlink::PassConfiguration& passes) override {
        passes.PrePrunePasses.push_back(orc::preserveDebugSections);
        passes.PostFixupPasses.push_back([this](jitlink::LinkGraph& graph) {
            linked_ = methods_of(graph);
            return llvm::Error::success();
        });
    }

    llvm::Error notifyEmitted(orc::MaterializationResponsibility& responsibility) override {
        for (JitMethod& method : linked_) collector_.tell_loaded(method);
        return responsibility.withResourceKeyDo(
            [&](orc::ResourceKey key) { loaded_[key] = std::exchange(linked_, {}); });
    }
    llvm::Error notifyFailed(orc::MaterializationResponsibility&) override {
        linked_.clear();
        return llvm::Error::success();
    }
    llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey key) override {
        if (const auto methods = loaded_.extract(key)) {
            for (const JitMethod& method : methods.mapped()) collector_.tell_unloaded(method);
        }
        return llvm::Error::success();
    }
    void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

private:
    const JitCollector& collector_;
    Methods linked_;  // of the one link that is under way
    std::map<orc::ResourceKey, Methods> loaded_;
};

}  // namespace

std::shared_ptr<orc::ObjectLinkingLayer::Plugin> make_collector_plugin(const JitCollector& collector) {
    return std::make_shared<CollectorPlugin>(collector);
}

}  // namespace kvjit::rt
