// The dynamic shared memory of the block that runs, between zones that no access may touch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/machine/emulated/thread.h"

namespace kvjit::emulation {

class SharedMemory {
public:
    static constexpr i64 kMostBytes = 227 * 1024;

    SharedMemory() = default;
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    /// False: no memory.
    bool reserve();
    /// A block begins, with `bytes` of it.
    void start(i64 bytes) {
        bytes_ = bytes;
        used_ = false;
    }
    /// Its address; what a block finds there is never what it, or another, had written before.
    char* use();

    i64 bytes() const { return bytes_; }
    /// Whether the address lies in the memory or a zone beside it.
    bool near(const void* address) const { return number(address) - number(zone_) < zone_bytes_; }
    /// May lie outside of 0..bytes()-1.
    i64 offset(const void* address) const { return static_cast<i64>(number(address) - number(begin_)); }
    bool contains(const void* address, i64 bytes) const {
        return offset(address) >= 0 && offset(address) + bytes <= bytes_;
    }

private:
    static std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

    char* zone_ = nullptr;
    std::size_t zone_bytes_ = 0;
    char* begin_ = nullptr;
    i64 bytes_ = 0;
    bool used_ = false;
};

}  // namespace kvjit::emulation
