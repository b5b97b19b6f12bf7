// Counts what a program asks of the C library's allocator, on any thread, and fails it on demand: malloc and its kin
// are replaced by ones that count and forward. operator new ends up there, too.
#pragma once

#include <cstdint>

namespace kvjit::test {

/// Calls so far of malloc, calloc, realloc, memalign, aligned_alloc and posix_memalign.
std::int64_t allocations();

/// Bytes that these have asked for so far: no less than what was in use at any time.
std::int64_t allocated_bytes();

/// Of the calls from now on fails the n-th, counted from 1, or that and all that follow.
enum class Failing { kOnce, kFromThenOn };
void fail_allocation(std::int64_t n, Failing failing);
void stop_failing();

}  // namespace kvjit::test
