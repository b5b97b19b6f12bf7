// The memories of a GPU as a kernel may use them: every access is checked.
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ptx/machine/kernel.h"
#include "ptx/machine/options.h"

namespace kvjit::ptx {

struct Range {
    u64 begin = 0, end = 0;
    bool holds(u64 address, u64 bytes) const { return address >= begin && address <= end && bytes <= end - address; }
};

/// What of the process's memory the GPU reaches: allocations, and host memory that was registered. Thread-safe.
class Allocations {
public:
    void add(u64 begin, u64 bytes);
    /// The bytes that began there; 0: none did.
    u64 remove(u64 begin);
    bool holds(u64 address, u64 bytes) const;
    /// In order. What the host's program does not free under a kernel's feet stays right for the kernel's life.
    std::vector<Range> ranges() const;

private:
    mutable std::mutex mutex_;
    std::map<u64, u64> bytes_;
};

/// Global memory as all blocks of a launch see it.
class GlobalMemory {
public:
    explicit GlobalMemory(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}
    /// Errors: Fault unless all bytes lie in one range.
    void check(u64 address, u32 bytes, int lane);

private:
    std::vector<Range> ranges_;
    Range last_;  // that held an access: most are followed by another one there
};

/// Plain stores of one block to global memory that other blocks do not see yet. The block's own loads see them.
class LateStores {
public:
    explicit LateStores(bool is_late) : is_late_(is_late) {}

    void store(u64 address, const void* from, u32 bytes, u32 warp);
    void load(u64 address, void* to, u32 bytes) const;
    /// Makes visible what a fence of the warp orders: its own stores, and those of other warps before the last barrier
    /// that both met.
    void fence(u32 warp);
    void barrier() { ++epoch_; }
    /// Makes visible what was stored at these bytes: an atomic operation follows there.
    void expose(u64 address, u32 bytes);
    /// Makes all visible.
    void flush();

private:
    struct Store {
        u64 address;
        u32 bytes, warp;
        u64 epoch;
        std::byte data[16];
    };
    struct Line {
        std::byte data[64];
        u64 written = 0;  // a bit for each byte
    };
    static void apply(const Store& store);
    void note(const Store& store);
    /// Makes the stores visible that `is_due` names; the others stay, in order.
    void apply_where(const auto& is_due);

    bool is_late_;
    u64 epoch_ = 0;
    std::vector<Store> stores_;  // in order
    std::unordered_map<u64, Line> lines_;
};

/// Who accesses shared memory, and when: as far as a lane's program and the barriers that it has met tell.
struct SharedAccess {
    u8 warp;
    u8 lane;
    u16 barriers;       // of the block
    u32 warp_barriers;  // of the warp
};

/// A block's shared memory.
class SharedMemory {
public:
    /// As at a kernel's start: nothing is written.
    void reset(u32 bytes);

    void load(u64 address, void* to, u32 bytes, SharedAccess by);
    void store(u64 address, const void* from, u32 bytes, SharedAccess by);

    /// An asynchronous copy that writes these bytes begins, or has arrived. In between they are poisoned.
    void begin_copy(u64 address, u32 bytes, SharedAccess by);
    void end_copy(u64 address, const void* from, u32 bytes, SharedAccess by);
    void check(u64 address, u32 bytes, int lane) const;

private:
    enum class State : u8 { kWritten, kUnwritten, kInFlight };
    /// A byte, with its last write and the last reads: kMany where several lanes, or warps, have read it since the
    /// barriers that are noted.
    struct Byte {
        std::byte value{0xff};
        State state = State::kUnwritten;
        SharedAccess written{kNobody, 0, 0, 0};
        SharedAccess read{kNobody, 0, 0, 0};
    };
    static constexpr u8 kNobody = 0xfe, kMany = 0xff;

    static bool conflicts(const SharedAccess& before, const SharedAccess& by);
    static void note_read(SharedAccess& read, const SharedAccess& by);
    void check_write(u64 at, const SharedAccess& by) const;
    [[noreturn]] void refuse(u64 at, const char* what, const SharedAccess& by) const;

    std::vector<Byte> bytes_;
};

}  // namespace kvjit::ptx
