#include "cpu/link_passes.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>

#include <string>

namespace kvjit::rt {
namespace {

namespace jitlink = llvm::jitlink;

std::size_t fixup_bytes(jitlink::Edge::Kind kind) {
    namespace x86 = jitlink::x86_64;
    switch (kind) {
        case x86::Pointer64:
        case x86::Delta64:
        case x86::NegDelta64:
        case x86::Delta64FromGOT:
        case x86::RequestGOTAndTransformToDelta64:
        case x86::RequestGOTAndTransformToDelta64FromGOT:
            return 8;
        case x86::Pointer16:
            return 2;
        case x86::Pointer8:
        case x86::Delta8:
            return 1;
        default:
            return 4;
    }
}

llvm::Error check_machine(jitlink::LinkGraph& graph) {
    if (graph.getTargetTriple().getArch() == llvm::Triple::x86_64) return llvm::Error::success();
    return llvm::make_error<jitlink::JITLinkError>("it holds no x86-64 code");
}

// Runs before unreferenced symbols are pruned: an object of kvjit's refers to nothing outside of it.
llvm::Error check_symbols(jitlink::LinkGraph& graph) {
    std::string names;
    for (const jitlink::Symbol* symbol : graph.external_symbols()) names += " " + symbol->getName().str();
    if (names.empty()) return llvm::Error::success();
    return llvm::make_error<jitlink::JITLinkError>("undefined symbol" + names);
}

// JITLink trusts relocation offsets; a damaged one would write past its section.
llvm::Error check_fixups(jitlink::LinkGraph& graph) {
    for (const jitlink::Block* block : graph.blocks()) {
        for (const jitlink::Edge& edge : block->edges()) {
            const bool inside = edge.getOffset() + fixup_bytes(edge.getKind()) <= block->getSize();
            if (edge.isRelocation() && (block->isZeroFill() || !inside)) {
                return llvm::make_error<jitlink::JITLinkError>("a relocation lies outside of its section");
            }
        }
    }
    return llvm::Error::success();
}

// ORC drops what can't be reached from an external name, and of functions that share a section, the others' names.
llvm::Error keep_names(jitlink::LinkGraph& graph) {
    for (jitlink::Symbol* symbol : graph.defined_symbols()) symbol->setLive(true);
    return llvm::Error::success();
}

class LinkPasses final : public PassesPlugin {
public:
    // The list already has JITLink's own passes for x86-64, which split sections and don't apply fixups.
    void modifyPassConfig(llvm::orc::MaterializationResponsibility&, jitlink::LinkGraph&,
                          jitlink::PassConfiguration& passes) override {
        auto& list = passes.PrePrunePasses;
        list.emplace(list.begin(), check_machine);
        list.emplace_back(check_symbols);
        list.emplace_back(check_fixups);
        list.emplace_back(keep_names);
    }
};

}  // namespace

std::shared_ptr<PassesPlugin> make_link_passes() {
    return std::make_shared<LinkPasses>();
}

}  // namespace kvjit::rt
