// The memories of a GPU as a kernel may use them: every access is checked.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ptx/machine/accessor.h"
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

    /// Errors of both: those of check_order.
    void store(u64 address, const void* from, u32 bytes, Accessor by);
    void load(u64 address, void* to, u32 bytes, Accessor by) const;
    /// Errors: Fault for bytes that another lane has stored and no barrier of both orders before; but of lanes of one
    /// warp that store to one place one wins, which is no error.
    void check_order(u64 address, u32 bytes, const Accessor& by, bool is_store) const;
    /// Makes visible what a fence of these lanes of a warp orders: their own stores, and those of others before the
    /// last barrier that both met. `by`: any lane of the warp.
    void fence(Accessor by, u32 lanes);
    void barrier() {
        ++epoch_;
        forget_writers();
    }
    void forget_writers() { writers_.clear(); }
    /// Makes visible what was stored at these bytes: an atomic operation follows there.
    void expose(u64 address, u32 bytes);
    /// Makes all visible.
    void flush();

private:
    struct Store {
        u64 address;
        u32 bytes;
        Accessor by;
        u64 epoch;
        std::byte data[16];
    };
    struct Line {
        std::byte data[64];
        u64 written = 0;  // a bit for each byte
    };
    using Writers = std::array<Accessor, 64>;  // of a line's bytes
    static void apply(const Store& store);
    void note(const Store& store);
    /// Makes the stores visible that `is_due` names; the others stay, in order.
    void apply_where(const auto& is_due);

    bool is_late_;
    u64 epoch_ = 0;
    std::vector<Store> stores_;  // in order
    std::unordered_map<u64, Line> lines_;
    std::unordered_map<u64, Writers> writers_;  // since the block's last barrier
};

}  // namespace kvjit::ptx
