#include "cpu/loader.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>
#include <llvm/Support/ErrorHandling.h>

#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/debugger.h"
#include "cpu/jit_memory.h"

// JITLink alone, without ORC's session over it: an image refers to nothing outside of itself, so there is no symbol to
// look up, no library order and no state that images share but the memory manager.
namespace kvjit::rt {
namespace {

namespace jitlink = llvm::jitlink;
using Allocation = jitlink::JITLinkMemoryManager::FinalizedAlloc;

/// Room that LLVM takes on the heap to link an object of ours, many times over: asked for before it begins, since what
/// it has in hand when memory ends is never freed.
constexpr std::size_t kLinkingBytes = std::size_t{4} << 20;

void check_room() {
    ::operator delete(::operator new(kLinkingBytes));
}

/// LLVM would end the process. Its code has no handlers to run on the way out: what it held is lost, nothing else.
void throw_bad_alloc(void*, const char*, bool) {
    throw std::bad_alloc();
}

bool make_llvm_throw() noexcept {
    llvm::install_bad_alloc_error_handler(throw_bad_alloc);
    return true;
}

// From the start: nothing of LLVM runs before it.
[[maybe_unused]] const bool kThrows = make_llvm_throw();

// Never destroyed: an image may outlive statics.
JitMemory& memory() {
    static auto& manager = *new JitMemory;
    return manager;
}

struct Linked {
    std::optional<gen::Error> error;  // none: all the rest is there
    void* entry = nullptr;
    LoadedLayout layout;
    Allocation allocation;
};

gen::Error bad_object(std::string why) {
    return {KVJIT_BAD_FILE, std::move(why), "object", 0, 0, -1};
}

/// The object's fault, unless memory was refused.
gen::Error failure(llvm::Error error) {
    gen::Error found;
    llvm::handleAllErrors(
        std::move(error), [&](const JitMemoryError& refused) { found = refused.error(); },
        [&](const llvm::ErrorInfoBase& other) { found = bad_object(other.message()); });
    return found;
}

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

class LinkContext final : public jitlink::JITLinkContext {
public:
    LinkContext(std::string_view entry, Linked& linked) : JITLinkContext(nullptr), entry_(entry), linked_(linked) {}

    jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory(); }

    void notifyFailed(llvm::Error error) override { linked_.error = failure(std::move(error)); }

    void lookup(const LookupMap& symbols,
                std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> continuation) override {
        std::string message = "undefined symbol";
        for (const auto& symbol : symbols) message += " " + symbol.first.str();
        continuation->run(llvm::make_error<jitlink::JITLinkError>(message));
    }

    llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
        for (jitlink::Section& section : graph.sections()) {
            const jitlink::SectionRange range(section);
            if (!range.empty()) linked_.layout.sections.emplace(section.getName(), range.getStart().getValue());
        }
        for (const jitlink::Symbol* symbol : graph.defined_symbols()) note(*symbol);
        if (linked_.entry) return llvm::Error::success();
        return llvm::make_error<jitlink::JITLinkError>("no function named " + std::string(entry_));
    }

    void notifyFinalized(Allocation allocation) override { linked_.allocation = std::move(allocation); }

    llvm::Error modifyPassConfig(jitlink::LinkGraph&, jitlink::PassConfiguration& passes) override {
        passes.PrePrunePasses.push_back(check_fixups);
        return llvm::Error::success();
    }

private:
    void note(const jitlink::Symbol& symbol) {
        if (!symbol.hasName() || !symbol.isCallable()) return;
        linked_.layout.functions.push_back({symbol.getName().str(), symbol.getAddress().getValue(), symbol.getSize()});
        if (std::string_view(symbol.getName()) == entry_) linked_.entry = symbol.getAddress().toPtr<void*>();
    }

    std::string_view entry_;
    Linked& linked_;
};

class LinkedImage final : public Image {
public:
    LinkedImage(Linked linked, std::string object, const LaunchShape& launch)
        : Image(launch),
          entry_(linked.entry),
          allocation_(std::move(linked.allocation)),
          debugger_(std::in_place, std::move(object), linked.layout) {}

    ~LinkedImage() override {
        debugger_.reset();
        // Unmapping what was mapped doesn't fail, and nobody could act on it.
        llvm::consumeError(memory().deallocate(std::move(allocation_)));
    }

    void* entry() const override { return entry_; }

private:
    void* entry_;
    Allocation allocation_;
    std::optional<DebuggerEntry> debugger_;
};

Linked link(const std::string& object, std::string_view entry) {
    Linked linked;
    auto graph = jitlink::createLinkGraphFromObject({object, "kernel"});
    if (!graph) {
        linked.error = failure(graph.takeError());
    } else if ((*graph)->getTargetTriple().getArch() != llvm::Triple::x86_64) {
        linked.error = bad_object("it holds no x86-64 code");
    } else {
        // Calls back before it returns: this memory manager and lookup() above answer at once.
        jitlink::link(std::move(*graph), std::make_unique<LinkContext>(entry, linked));
    }
    return linked;
}

}  // namespace

gen::Result<ImagePtr> load_object(std::string_view object, std::string_view entry, const std::string& name,
                                  const LaunchShape& launch) {
    check_room();
    std::string bytes(object);  // aligned as LLVM's reader wants, and kept for gdb
    Linked linked = link(bytes, entry);
    // A policy came over the process since it last loaded: now there is another way, or a refusal that says so.
    if (linked.error && linked.error->status == KVJIT_BAD_TARGET) linked = link(bytes, entry);
    if (linked.error) {
        linked.error->message = "the object of " + name + " can't be loaded: " + linked.error->message;
        return std::unexpected(*linked.error);
    }
    announce_to_perf(linked.layout, name);
    return std::make_shared<LinkedImage>(std::move(linked), std::move(bytes), launch);
}

}  // namespace kvjit::rt
