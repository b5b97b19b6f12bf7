// What the interpreter refuses. A fault ends the launch; its message is all that a test needs to find the place.
#pragma once

#include <stdexcept>
#include <string>

namespace kvjit::ptx {

enum class FaultKind {
    kText,         // PTX that can't be read, or an instruction that the interpreter does not know
    kMisaligned,   // an address that is no multiple of what is accessed there
    kOutOfBounds,  // an address outside of every allocation, or of the block's shared memory
    kUnwritten,    // a byte or a register that nothing was written to, or a byte that is still being copied
    kUndefined,    // what the ISA leaves undefined: a division by zero, a shuffle from a lane that is absent
    kRace,         // accesses to shared memory of which nothing says which comes first
    kApart,        // lanes or warps that don't come together where they have to
};

class Fault : public std::runtime_error {
public:
    static constexpr int kNoLane = -1;

    Fault(FaultKind kind, const std::string& message, int lane = kNoLane)
        : std::runtime_error(message), kind_(kind), lane_(lane) {}

    FaultKind kind() const { return kind_; }
    int lane() const { return lane_; }

private:
    FaultKind kind_;
    int lane_;
};

}  // namespace kvjit::ptx
