// From PTX to kernels.
#pragma once

#include <string_view>
#include <vector>

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

/// All entries of a module, decoded. Errors: Fault, with the line, for whatever is not understood: an instruction or
/// operands that the table lacks, static shared memory, a global variable that an instruction uses.
std::vector<Kernel> parse_module(std::string_view source);

}  // namespace kvjit::ptx
