// What the rules of wgmma need to know of a warp's registers: who accessed each of them last, and which of them are of
// operations under way.
#pragma once

#include <string>
#include <vector>

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

/// ISA 9.7.15.7.1 and .3: a fence lies between any other access to a register and an operation that uses it, and no
/// instruction touches it until the operation was waited for. Operations of the same shape may follow each other in the
/// same accumulators without either. Two operations that only read a register, as their fragments of A, are no
/// conflict.
///
/// Errors of all: Fault.
class AsyncRegisters {
public:
    explicit AsyncRegisters(const Kernel& kernel) : kernel_(kernel), uses_(kernel.lists.empty() ? 0 : kernel.units) {}

    /// wgmma.fence
    void fence() { ++fences_; }
    void check_fenced() const;

    /// Other instructions.
    void read(Place place);
    void write(Place place);

    /// An operation of m64nNk16 begins that adds to the register, or that reads it as a part of A.
    void begin_sum(Place place, u16 n);
    void begin_fragment(Place place);
    /// It was waited for.
    void end(Place place) { --uses_[place].pending; }
    bool is_pending(Place place) const { return uses_[place].pending != 0; }

private:
    enum class Kind : u8 { kRead, kWritten, kSum, kFragment };
    struct Use {
        u32 fences = 0;   // that were executed before the last access
        u16 pending = 0;  // operations under way
        u16 n = 0;        // of kSum
        Kind kind = Kind::kRead;
    };
    void check_idle(Place place, const char* what) const;
    [[noreturn]] void refuse(Place place, const std::string& what) const;
    static std::string describe(const Use& use);

    const Kernel& kernel_;
    std::vector<Use> uses_;  // by unit
    u32 fences_ = 0;
};

}  // namespace kvjit::ptx
