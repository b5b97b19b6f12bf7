// A loop of multiply-adds that never leaves the registers. register_loop.cc is compiled once for each width.
#pragma once

namespace kvjit::limits {

/// Each does `rounds` rounds and returns the floating-point operations that they were, two for a multiply-add.
double register_loop_128(long rounds);
double register_loop_256(long rounds);
double register_loop_512(long rounds);

}  // namespace kvjit::limits
