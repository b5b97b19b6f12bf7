// What the emulator remembers of memory: for each byte who wrote it last and who has read it since, so that two
// accesses that nothing orders are found whatever order they happened to run in.
//
// Accesses of a block are ordered by its barriers (epochs, counted on through all blocks and launches, so that nothing
// needs clearing), those of one warp also by its warp barriers (epochs of the warp). Accesses of different blocks of a
// launch are ordered as Order says.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "cuda/machine/emulated/thread.h"

namespace kvjit::emulation {

using Epoch = std::uint32_t;
inline constexpr std::uint32_t kAllLanes = 0xffffffff;

enum class Touch : std::uint32_t { kRead, kWrite, kAtomic, kIssue, kArrive };  // the last two: of an asynchronous copy

/// A place in the kernel's code: its distance to the entry.
using Place = std::int32_t;

/// One access. Small: there are four for each word of memory.
class Mark {
public:
    Mark() = default;
    /// `warp_epoch`: since the block's epoch began; `thread`: below 1024.
    Mark(Epoch epoch, Epoch warp_epoch, int thread, Touch touch, Place place)
        : epoch_(epoch),
          who_(warp_epoch << 13 | static_cast<std::uint32_t>(touch) << 10 | static_cast<std::uint32_t>(thread)),
          place_(place) {}

    Epoch epoch() const { return epoch_; }  // 0: there was no access
    Epoch warp_epoch() const { return who_ >> 13; }
    Touch touch() const { return static_cast<Touch>(who_ >> 10 & 7); }
    int thread() const { return static_cast<int>(who_ & 1023); }
    int warp() const { return thread() / kWarpLanes; }
    Place place() const { return place_; }
    /// The same of another lane of the warp.
    Mark of_lane(int lane) const { return {epoch_, warp_epoch(), warp() * kWarpLanes + lane, touch(), place_}; }

private:
    Epoch epoch_ = 0;
    std::uint32_t who_ = 0;
    Place place_ = 0;
};

/// Who accesses memory now, and when.
struct Actor {
    Mark mark;
    std::uint32_t lanes = 0;  // its own bit; all of them where the warp reads together
    Epoch block_start = 0;    // epochs before are other blocks'
    Epoch launch_start = 0;   // epochs before are other launches'
};

/// The state of a few bytes that have always been accessed together.
struct Cell {
    Mark write;
    Mark read;                     // the block's latest, by one warp
    std::uint32_t read_lanes = 0;  // of that warp, in that epoch of it
    Mark other_warp;               // in the epoch of `read`: one of another warp
    Mark other_block;              // the latest read of a block before
};

enum class Conflict { kNone, kWritten, kRead, kAtomic, kInFlight, kNeverWritten, kOtherBlockWrote, kOtherBlockRead };

struct Finding {
    Conflict conflict = Conflict::kNone;
    Mark other;
};

class Order;

/// Finds out what `actor` collides with, and if that is nothing notes the access. `order`: of accesses of different
/// blocks; null: the memory is the block's own, and begins with nothing in it.
Finding touch(Cell& cell, const Actor& actor, const Order* order);

/// Cells of consecutive memory: of whole words until something smaller is accessed.
class Cells {
public:
    explicit Cells(std::size_t bytes);

    Finding touch(std::size_t offset, std::size_t bytes, const Actor& actor, const Order* order);
    std::size_t memory() const { return memory_; }

private:
    static constexpr std::size_t kWord = 4;

    struct Free {
        void operator()(void* p) const { std::free(p); }
    };
    template <class T>
    using Array = std::unique_ptr<T[], Free>;
    template <class T>
    Array<T> zeros(std::size_t count);

    bool is_split(std::size_t word, const Actor& actor) const;
    void split(std::size_t word, const Actor& actor);

    std::size_t memory_ = 0;
    std::size_t count_;
    Array<Cell> words_;
    Array<Cell> bytes_;   // made when the first word is split
    Array<Epoch> split_;  // when, and so in which launch, a word was split
};

}  // namespace kvjit::emulation
