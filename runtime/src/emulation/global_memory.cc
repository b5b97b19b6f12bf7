#include "emulation/global_memory.h"

#include <algorithm>

namespace kvjit::emulation {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::size_t kMostKept = 256 << 20;  // bytes

}  // namespace

void GlobalMemory::clear() {
    pages_.clear();
    recent_.fill({});
}

void GlobalMemory::start_launch() {
    std::size_t kept = 0;
    for (const auto& [number, cells] : pages_) kept += cells->memory();
    if (kept > kMostKept) clear();
}

Cells& GlobalMemory::page(std::uintptr_t number) {
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number == number) return *recent.cells;
    std::unique_ptr<Cells>& cells = pages_[number];
    if (!cells) cells = std::make_unique<Cells>(kPage);
    recent = {number, cells.get()};
    return *cells;
}

Finding GlobalMemory::touch(const void* address, i64 bytes, const Actor& actor, const Order& order) {
    std::uintptr_t from = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = from + static_cast<std::uintptr_t>(bytes);
    while (from < end) {
        const std::uintptr_t number = from / kPage, stop = std::min(end, (number + 1) * kPage);
        if (Finding f = page(number).touch(from % kPage, stop - from, actor, &order); f.conflict != Conflict::kNone) {
            return f;
        }
        from = stop;
    }
    return {};
}

}  // namespace kvjit::emulation
