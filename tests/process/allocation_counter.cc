#include "allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<std::int64_t> count{0};

}  // namespace

namespace kvjit::test {

std::int64_t allocations() {
    return count;
}

}  // namespace kvjit::test

// glibc's own functions, under the names that it keeps for replacements like these. Its free fits them.
extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t elements, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

[[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
    ++count;
    return __libc_malloc(bytes);
}

[[gnu::visibility("default")]] void* calloc(std::size_t elements, std::size_t bytes) {
    ++count;
    return __libc_calloc(elements, bytes);
}

[[gnu::visibility("default")]] void* realloc(void* memory, std::size_t bytes) {
    ++count;
    return __libc_realloc(memory, bytes);
}

[[gnu::visibility("default")]] void* memalign(std::size_t alignment, std::size_t bytes) {
    ++count;
    return __libc_memalign(alignment, bytes);
}

[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    ++count;
    return __libc_memalign(alignment, bytes);
}

[[gnu::visibility("default")]] int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
    ++count;
    *memory = __libc_memalign(alignment, bytes);
    return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
