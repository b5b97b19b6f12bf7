// What of a GPU the ISA leaves open, and which of it the interpreter takes: a text of name=value, separated by commas.
#pragma once

#include <string>
#include <string_view>

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

/// When the bytes of cp.async arrive, of which the ISA says only that they are there after the wait.
enum class Copies { kAtIssue, kAtWait, kPoisoned };  // kPoisoned: at the wait, and reading them before is a fault

/// When wgmma reads its operands and writes its sums, which nothing may touch until the wait. kBySeed: one or the
/// other.
enum class ProductTime { kBySeed, kAtIssue, kAtWait };

/// How mma and wgmma add: `terms` products at once and the sum so far, each cut to `bits` bits behind the largest one's
/// first, then the sum cut to float32's. terms 0: all products exactly, rounded once to nearest.
struct Sums {
    int terms = 4, bits = 23;
};

struct Options {
    u64 seed = 1;
    int major = 8, minor = 0;  // compute capability
    int multiprocessors = 16;
    int resident_blocks = 2;  // whose warps take turns
    Copies copies = Copies::kPoisoned;
    ProductTime products = ProductTime::kBySeed;
    Sums sums;
    bool has_noise = true;        // ex2, lg2 and rcp.approx are off by what the ISA allows
    bool has_late_stores = true;  // other blocks see plain stores after a fence, or when the kernel has ended

    /// That a block may have: all of a multiprocessor's but 1 KiB (CUDA C++ Programming Guide, "Compute Capabilities").
    int shared_bytes() const {
        if (major == 8) return (minor == 6 || minor == 9 ? 99 : 163) * 1024;
        return (major == 12 ? 99 : 227) * 1024;
    }
    /// Whether code of a .target runs here: with the suffix a on that architecture alone, else on later ones, too;
    /// machine code, and any with the suffix f, on those of its major version. A text that isn't "sm_80", "sm_90a" or
    /// the like is no target, and runs nowhere.
    bool runs(std::string_view target, bool is_machine_code) const;
};

/// The names: seed, capability (8.0, 9.0, ...), multiprocessors, blocks, copies (issue, wait, poison), wgmma
/// (seed, issue, wait), mma (narrow, ampere, hopper, exact), noise (0, 1), stores (late, plain). Errors: Fault, with
/// what a name takes.
Options parse_options(std::string_view text);

}  // namespace kvjit::ptx
