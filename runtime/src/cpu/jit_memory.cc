#include "cpu/jit_memory.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/Support/Process.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "cpu/code_pages.h"

namespace kvjit::rt {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;

/// More than any program needs: only a damaged object requests it.
constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 30;

llvm::Error refused(const gen::Error& error) {
    return llvm::make_error<JitMemoryError>(error);
}

int protection(orc::MemProt wanted) {
    const auto bit = [wanted](orc::MemProt one, int flag) {
        return (llvm::to_underlying(wanted) & llvm::to_underlying(one)) != 0 ? flag : PROT_NONE;
    };
    return bit(orc::MemProt::Read, PROT_READ) | bit(orc::MemProt::Write, PROT_WRITE) |
           bit(orc::MemProt::Exec, PROT_EXEC);
}

struct FreeBytes {
    void operator()(char* bytes) const { std::free(bytes); }
};

/// Where an image lies: in pages of its own, or on the heap if it has no code.
struct Room {
    CodePages pages;
    std::unique_ptr<char, FreeBytes> data;
};

/// The object at a FinalizedAlloc's address.
struct Loaded {
    Room room;
    std::vector<orc::shared::WrapperFunctionCall> at_end;
};

/// An image while it is linked. However linking ends, its pages are freed unless a Loaded has taken them.
class Linking final : public jitlink::JITLinkMemoryManager::InFlightAlloc {
public:
    Linking(jitlink::LinkGraph& graph, Room room, std::vector<CodeSegment> segments, std::size_t lasting_bytes)
        : graph_(graph), room_(std::move(room)), segments_(std::move(segments)), lasting_bytes_(lasting_bytes) {}

    void abandon(OnAbandonedFunction on_abandoned) override { on_abandoned(llvm::Error::success()); }
    void finalize(OnFinalizedFunction on_finalized) override { on_finalized(finish()); }

private:
    llvm::Expected<jitlink::JITLinkMemoryManager::FinalizedAlloc> finish() {
        if (auto sealed = room_.pages.seal(segments_); !sealed) return refused(sealed.error());
        auto at_end = orc::shared::runFinalizeActions(graph_.allocActions());
        if (!at_end) return at_end.takeError();
        room_.pages.shrink(lasting_bytes_);
        auto* loaded = new Loaded{std::move(room_), std::move(*at_end)};
        return jitlink::JITLinkMemoryManager::FinalizedAlloc(orc::ExecutorAddr::fromPtr(loaded));
    }

    jitlink::LinkGraph& graph_;
    Room room_;
    std::vector<CodeSegment> segments_;  // none on the heap
    std::size_t lasting_bytes_;
};

llvm::Error check_size(std::uint64_t bytes) {
    if (bytes <= kMaxImageBytes) return llvm::Error::success();
    return llvm::make_error<jitlink::JITLinkError>("it asks for " + std::to_string(bytes) + " bytes of memory");
}

llvm::Expected<CodePages> map_pages(std::uint64_t bytes) {
    if (llvm::Error error = check_size(bytes)) return error;
    const gen::Result<CodeMapping> mapping = code_mapping();
    if (!mapping) return refused(mapping.error());
    gen::Result<CodePages> pages = CodePages::map(bytes, *mapping);
    if (!pages) return refused(pages.error());
    return *std::move(pages);
}

/// Places the segments: lasting ones first, then those needed only for linking.
std::vector<CodeSegment> place(jitlink::BasicLayout& layout, const CodePages& pages, std::size_t lasting_bytes,
                               std::uint64_t page_bytes) {
    std::vector<CodeSegment> segments;
    std::size_t next_lasting = 0, next_passing = lasting_bytes;
    for (auto& [group, segment] : layout.segments()) {
        std::size_t& offset = group.getMemLifetime() == orc::MemLifetime::Standard ? next_lasting : next_passing;
        segment.WorkingMem = pages.writable() + offset;
        segment.Addr = orc::ExecutorAddr::fromPtr(pages.address() + offset);
        const std::size_t bytes = llvm::alignTo(segment.ContentSize + segment.ZeroFillSize, page_bytes);
        segments.push_back({offset, bytes, protection(group.getMemProt())});
        offset += bytes;
    }
    return segments;
}

bool holds_code(jitlink::BasicLayout& layout) {
    for (auto& [group, segment] : layout.segments()) {
        if ((protection(group.getMemProt()) & PROT_EXEC) != 0) return true;
    }
    return false;
}

/// What has no code, such as ORC's copies of objects for gdb, goes on the heap: mapping pages for it would take longer
/// than the rest of a load.
jitlink::JITLinkMemoryManager::AllocResult start_data(jitlink::LinkGraph& graph, jitlink::BasicLayout& layout,
                                                      std::uint64_t bytes, std::uint64_t page_bytes) {
    if (llvm::Error error = check_size(bytes)) return error;
    Room room{{}, std::unique_ptr<char, FreeBytes>(static_cast<char*>(std::aligned_alloc(page_bytes, bytes)))};
    if (!room.data) throw std::bad_alloc();
    char* next = room.data.get();
    for (auto& [group, segment] : layout.segments()) {
        segment.WorkingMem = next;
        segment.Addr = orc::ExecutorAddr::fromPtr(next);
        next += llvm::alignTo(segment.ContentSize + segment.ZeroFillSize, page_bytes);
    }
    if (llvm::Error error = layout.apply()) return error;
    return std::make_unique<Linking>(graph, std::move(room), std::vector<CodeSegment>(), bytes);
}

jitlink::JITLinkMemoryManager::AllocResult start_linking(jitlink::LinkGraph& graph) {
    const std::uint64_t page_bytes = llvm::sys::Process::getPageSizeEstimate();
    jitlink::BasicLayout layout(graph);
    auto sizes = layout.getContiguousPageBasedLayoutSizes(page_bytes);
    if (!sizes) return sizes.takeError();
    if (!holds_code(layout)) return start_data(graph, layout, sizes->total(), page_bytes);
    llvm::Expected<CodePages> pages = map_pages(sizes->total());
    if (!pages) return pages.takeError();
    std::vector<CodeSegment> segments = place(layout, *pages, sizes->StandardSegs, page_bytes);
    if (llvm::Error error = layout.apply()) return error;
    return std::make_unique<Linking>(graph, Room{std::move(*pages), nullptr}, std::move(segments), sizes->StandardSegs);
}

}  // namespace

char JitMemoryError::ID = 0;

void JitMemory::allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph, OnAllocatedFunction on_allocated) {
    on_allocated(start_linking(graph));
}

void JitMemory::deallocate(std::vector<FinalizedAlloc> images, OnDeallocatedFunction on_deallocated) {
    llvm::Error errors = llvm::Error::success();
    for (FinalizedAlloc& image : images) {
        const std::unique_ptr<Loaded> ending(image.release().toPtr<Loaded*>());
        errors = llvm::joinErrors(std::move(errors), orc::shared::runDeallocActions(ending->at_end));
    }
    on_deallocated(std::move(errors));
}

}  // namespace kvjit::rt
