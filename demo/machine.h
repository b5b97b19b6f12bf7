// What the loop runs on: memory, and what the machine does when it does nothing else.
#pragma once

#include <memory>
#include <string>

#include "kvjit/kvjit.hpp"
#include "memory.h"
#include "options.h"

namespace demo {

/// What the machine does in a second when it does nothing else; 0: not known.
struct Yardstick {
    double bytes_a_second;
    double operations_a_second;  // floating-point
};

class Machine {
public:
    virtual ~Machine() = default;
    /// A line for people.
    virtual std::string headline() const = 0;
    virtual Memory& memory() = 0;
    /// Measures anew.
    virtual Yardstick measure() = 0;
    /// What it measures, a sentence or two for people.
    virtual std::string explanation() const = 0;
};

/// Throws with what is missing, as open_machine does.
kvjit::Target open_target(const Options& options);

/// Comes after open_target, which opens a GPU's driver for both.
std::unique_ptr<Machine> open_machine(const Options& options);

}  // namespace demo
