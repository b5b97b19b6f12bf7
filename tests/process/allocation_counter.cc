#include "allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <limits>

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::atomic<std::int64_t> count{0}, total{0};
std::atomic<std::int64_t> first_failing{kNever}, last_failing{kNever};

/// Counts a call that asks for `bytes`. Whether it is to fail.
bool fails(std::size_t bytes) {
    const std::int64_t number = ++count;
    total += static_cast<std::int64_t>(bytes);
    if (number < first_failing || number > last_failing) return false;
    errno = ENOMEM;
    return true;
}

}  // namespace

namespace kvjit::test {

std::int64_t allocations() {
    return count;
}
std::int64_t allocated_bytes() {
    return total;
}

void fail_allocation(std::int64_t n, Failing failing) {
    const std::int64_t number = count + n;
    last_failing = failing == Failing::kOnce ? number : kNever;
    first_failing = number;
}

void stop_failing() {
    first_failing = last_failing = kNever;
}

}  // namespace kvjit::test

// glibc's own functions, under the names that it keeps for replacements like these. Its free fits them.
extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t elements, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

[[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
    if (fails(bytes)) return nullptr;
    return __libc_malloc(bytes);
}

[[gnu::visibility("default")]] void* calloc(std::size_t elements, std::size_t bytes) {
    if (fails(elements * bytes)) return nullptr;
    return __libc_calloc(elements, bytes);
}

[[gnu::visibility("default")]] void* realloc(void* memory, std::size_t bytes) {
    if (fails(bytes)) return nullptr;
    return __libc_realloc(memory, bytes);
}

[[gnu::visibility("default")]] void* memalign(std::size_t alignment, std::size_t bytes) {
    if (fails(bytes)) return nullptr;
    return __libc_memalign(alignment, bytes);
}

[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    if (fails(bytes)) return nullptr;
    return __libc_memalign(alignment, bytes);
}

[[gnu::visibility("default")]] int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
    if (fails(bytes)) return ENOMEM;
    *memory = __libc_memalign(alignment, bytes);
    return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
