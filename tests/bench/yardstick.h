// What this machine can do at all, measured in the same run as what is held against it.
#pragma once

namespace kvjit::bench {

/// Bytes a second of a loop that only reads, on thread_count() threads, memory beyond the last-level cache.
double measure_read();

/// Floating-point operations a second of a loop of multiply-adds in registers, with the widest vectors that the machine
/// has, on thread_count() threads.
double measure_arithmetic();

}  // namespace kvjit::bench
