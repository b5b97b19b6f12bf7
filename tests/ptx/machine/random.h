// Numbers from a seed (xorshift64*), for orders that a test can repeat, and for errors that inputs determine.
#pragma once

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

class Random {
public:
    explicit Random(u64 seed) : state_(seed * 2 + 1) {}
    u64 next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1dU;
    }
    /// 0 .. count - 1
    u32 below(u32 count) { return static_cast<u32>((next() >> 32) % count); }

private:
    u64 state_;
};

}  // namespace kvjit::ptx
