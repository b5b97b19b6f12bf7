// Each access of a kernel to memory: is it aligned, does it stay inside, and does anything order it with what others do
// to the same bytes.
#pragma once

#include <string>
#include <vector>

#include "emulation/fiber.h"
#include "emulation/global_memory.h"
#include "emulation/meetings.h"
#include "emulation/order.h"
#include "emulation/plugin.h"
#include "emulation/shadow.h"
#include "emulation/shared_memory.h"

namespace kvjit::emulation {

/// Who tells lines: kvjit.
struct Lines {
    kvjit_emulation_line find;
    void* context;
};

enum class Space { kAny, kShared };

struct Access {
    const void* address;
    i64 bytes;
    Touch touch;
    const void* where;  // the return address in the kernel's code
    i64 alignment;      // the address must be a multiple of it
    Space space = Space::kAny;
    bool whole_warp = false;  // all its lanes read together
};

class Checks {
public:
    Checks(const Stacks& stacks, const SharedMemory& shared, const Meetings& meetings, const Lines& lines)
        : stacks_(stacks), shared_(shared), meetings_(meetings), lines_(lines) {}

    /// `ignored`: the kernel's arguments, which nobody writes.
    void start_launch(const void* entry, const void* ignored, std::size_t ignored_bytes);
    /// Epochs begin anew.
    void forget();
    void start_block(i64 x, i64 y, int threads);

    /// False: wrong() says what is, once no thread runs: it takes more stack than they have. May throw std::bad_alloc.
    bool access(Fiber& self, const Access& access);
    void fence(const Fiber& self);
    void atomic(const Fiber& self, const void* address);

    std::string wrong() const;

private:
    enum class Fault { kNone, kNull, kMisaligned, kForeignStack, kNotShared, kOutside, kConflict, kEndless };
    struct Block {
        Epoch start;
        i64 x, y;
    };

    Actor actor(const Fiber& self, Touch touch, const void* where, bool whole_warp = false) const;
    Fault find_fault(const Access& access);
    bool is_ignored(const void* address) const;

    std::string endless() const;
    std::string what_is_wrong() const;
    std::string subject() const;
    std::string collision() const;
    std::string line(Place place) const;
    std::string block_of(const Mark& mark) const;

    const Stacks& stacks_;
    const SharedMemory& shared_;
    const Meetings& meetings_;
    const Lines lines_;
    const char* entry_ = nullptr;
    const char* ignored_ = nullptr;
    std::size_t ignored_bytes_ = 0;

    Cells shared_cells_{static_cast<std::size_t>(SharedMemory::kMostBytes)};
    GlobalMemory global_;
    Order order_;
    std::vector<Block> blocks_;  // of the launch, as they ran
    Epoch launch_start_ = 0;

    // What was wrong last.
    Fault fault_ = Fault::kNone;
    Access access_{};
    Actor actor_;
    Finding finding_;
};

}  // namespace kvjit::emulation
