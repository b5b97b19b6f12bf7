// What the loop runs on: memory, and what the machine does when it does nothing else.
#pragma once

#include <memory>
#include <string>

#include "kvjit/kvjit.hpp"
#include "memory.h"
#include "options.h"

namespace demo {

/// What reading keys and values is held against.
struct Yardstick {
    const char* who;        // "the machine"
    const char* does;       // "reads"
    const char* how;        // it was measured
    double bytes_a_second;  // 0: nothing is worth comparing
};

class Machine {
public:
    virtual ~Machine() = default;
    /// A line for people.
    virtual std::string headline() const = 0;
    virtual Memory& memory() = 0;
    /// Measures anew. Takes memory meanwhile.
    virtual Yardstick measure() = 0;
};

/// Throws with what is missing, as open_machine does.
kvjit::Target open_target(const Options& options);

/// Comes after open_target, which opens a GPU's driver for both.
std::unique_ptr<Machine> open_machine(const Options& options);

}  // namespace demo
