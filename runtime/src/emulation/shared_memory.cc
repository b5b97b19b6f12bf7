#include "emulation/shared_memory.h"

#include <sys/mman.h>

#include <cstring>

namespace kvjit::emulation {
namespace {

constexpr std::size_t kZone = 1 << 20;
constexpr int kPoison = 0xff;  // NaN as float32 and as float16

}  // namespace

SharedMemory::~SharedMemory() {
    if (zone_) munmap(zone_, zone_bytes_);
}

bool SharedMemory::reserve() {
    if (zone_) return true;
    const std::size_t bytes = kZone + kMostBytes + kZone;
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return false;
    zone_ = static_cast<char*>(mapped);
    zone_bytes_ = bytes;
    begin_ = zone_ + kZone + kSharedAlignment;  // aligned no better than promised
    return true;
}

char* SharedMemory::use() {
    if (!used_) std::memset(begin_, kPoison, static_cast<std::size_t>(bytes_));
    used_ = true;
    return begin_;
}

}  // namespace kvjit::emulation
