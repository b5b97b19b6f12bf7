// Counts what a program asks of the C library's allocator, on any thread: malloc and its kin are replaced by ones that
// count and forward. operator new ends up there, too.
#pragma once

#include <cstdint>

namespace kvjit::test {

/// Calls so far of malloc, calloc, realloc, memalign, aligned_alloc and posix_memalign.
std::int64_t allocations();

}  // namespace kvjit::test
