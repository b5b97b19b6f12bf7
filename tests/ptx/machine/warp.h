// A warp: registers, where its lanes are, and the copies that they began.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "ptx/machine/async_registers.h"
#include "ptx/machine/fault.h"
#include "ptx/machine/kernel.h"
#include "ptx/machine/memory.h"
#include "ptx/machine/random.h"
#include "ptx/machine/shared_memory.h"
#include "ptx/machine/warpgroup.h"

namespace kvjit::ptx {

/// What a warp shares with the others of its block.
struct BlockState {
    u32 x = 0, y = 0, blocks_x = 1, blocks_y = 1, threads = 0;
    const std::byte* parameters = nullptr;
    u32 parameter_bytes = 0;
    const Options* options = nullptr;
    GlobalMemory* global = nullptr;
    Random* random = nullptr;
    u16 barriers = 0;  // that the block has met
    SharedMemory shared;
    std::vector<Lockstep> warpgroups;  // those that have four whole warps
    LateStores stores{true};
};

/// Which barrier a warp waits at; those that a block's warps wait at together are equal.
struct Barrier {
    i64 number;
    u32 at;  // bar.sync: the instruction, at which all warps must be; barrier.sync: 0, as they may be at several

    bool operator==(const Barrier&) const = default;
};

class Warp {
public:
    enum class State { kRuns, kAtBarrier, kDone };

    Warp(const Kernel& kernel, BlockState& block, u32 number);

    /// Executes up to `steps` instructions, fewer where the warp comes to a barrier or its end. Errors: Fault, which
    /// says where.
    State run(int steps);
    State state() const { return state_; }
    /// Whether an atomic operation has ended the last turn.
    bool has_counted() const { return turn_ends_; }
    /// The last one that it came to.
    const Barrier& barrier() const { return barrier_; }
    void pass_barrier() { state_ = State::kRuns; }
    /// "waits at kvjit_merge, PTX line 12 (cuda/merge.cu:30), lanes 0-31"
    std::string describe() const;
    /// "kvjit_merge, PTX line 12 (cuda/merge.cu:30)"
    std::string where(u32 at) const;

    // ---- For instructions ----------------------------------------------------------------------------------------

    BlockState& block() { return block_; }
    const Options& options() const { return *block_.options; }
    const SharedMemory& shared() const { return block_.shared; }
    u32 number() const { return number_; }
    /// The lanes that execute the current instruction.
    u32 mask() const { return mask_; }
    bool is_active(int lane) const { return (mask_ >> lane & 1) != 0; }

    /// A register's 32 lanes.
    template <class T>
    const T* lanes(Place place) const {
        return reinterpret_cast<const T*>(units_[place].bytes);
    }
    u32 predicate(Place place) const { return *lanes<u32>(place); }

    /// Writes the active lanes.
    template <class T>
    void put(Place place, const T (&values)[kLanes]) {
        auto* to = reinterpret_cast<T*>(units_[place].bytes);
        if (mask_ == kAllLanes) {
            std::memcpy(to, values, sizeof values);
        } else {
            for (int l = 0; l < kLanes; ++l) to[l] = is_active(l) ? values[l] : to[l];
        }
    }
    void put_predicate(Place place, u32 bits) {
        auto* to = reinterpret_cast<u32*>(units_[place].bytes);
        *to = (*to & ~mask_) | (bits & mask_);
    }

    /// For copies: whether `to` is written follows from the register that each lane chose.
    void copy_written(Place to, Place from, Place otherwise, u32 choice);
    void check_written(Place place) const;

    u32 index_of(const Instruction& in) const { return static_cast<u32>(&in - kernel_.instructions.data()); }
    const std::vector<Place>& list(const Instruction& in) const { return kernel_.lists[in.list]; }
    void mark_written(Place place) { written_[place] |= mask_; }
    AsyncRegisters& async_registers() { return async_registers_; }
    Products& products() { return products_; }
    /// Whether those that have begun by now are done now, as a choice that the ISA leaves open.
    bool products_are_early();

    /// All lanes named by an instruction's member masks must execute it now, and no other one.
    void check_members(Place masks) const;
    /// All lanes that have not ended must execute the instruction now.
    void check_together() const;
    /// And none of the 32 may have ended.
    void check_whole() const;

    Accessor accessor(int lane) const {
        return {static_cast<u8>(number_), static_cast<u8>(lane), block_.barriers, barriers_};
    }
    /// Orders the accesses of the warp's lanes.
    void pass_warp_barrier() { barriers_ += mask_ == alive_; }

    void branch(const Instruction& in);
    /// bra.uni: all lanes that are here take it, or none.
    void branch_together(const Instruction& in);
    void exit();
    void wait_at_barrier(Barrier barrier);
    /// Lets others run after this instruction, an atomic operation.
    void end_turn() { turn_ends_ = true; }

    void begin_copy(int lane, u64 shared, u64 global, u32 bytes, u32 read);
    void commit_copies();
    void wait_copies(i64 pending);

private:
    /// Lanes that go the same way, until they meet others.
    struct Path {
        u32 next, reconvergence, mask;
    };
    struct Copy {
        u64 shared, global;
        u32 bytes, read;  // what is not read is written as zeros
        int lane;
        u32 group;
    };

    void fill_specials();
    void step();
    void check_written(Place place, u32 mask) const;
    void note_accesses(const Instruction& in);
    void leave_finished_paths();
    void finish(const Copy& copy);
    u32 current() const { return paths_.back().next; }
    [[noreturn]] void explain(const Fault& fault, u32 at) const;

    const Kernel& kernel_;
    BlockState& block_;
    u32 number_;
    u32 alive_;  // lanes that have not ended
    u32 mask_ = 0;
    u32 barriers_ = 0;  // of the warp, that all its lanes have met
    State state_ = State::kRuns;
    Barrier barrier_{};
    bool turn_ends_ = false;
    std::vector<Path> paths_;  // the last one runs
    std::vector<Unit> units_;
    std::vector<u32> written_;  // by unit: the lanes of its register that were
    std::vector<Copy> copies_;
    std::array<u32, kLanes> groups_{};  // that each lane committed
    AsyncRegisters async_registers_;
    Products products_;
};

}  // namespace kvjit::ptx
