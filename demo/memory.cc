#include "memory.h"

#include <unistd.h>

#include <cstring>
#include <new>

namespace demo {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void* HostMemory::take(std::size_t bytes) {
    return std::memset(::operator new(bytes, kAlignment), 0, bytes);
}

void HostMemory::give_back(void* block) noexcept {
    ::operator delete(block, kAlignment);
}

std::size_t HostMemory::free_bytes() const {
    return static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace demo
