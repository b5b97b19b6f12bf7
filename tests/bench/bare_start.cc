// kvjit_bare_start NAME START: what any C++ program costs before it does anything. Prints what kvjit_first_call prints.
#include <cstdio>
#include <cstdlib>

#include "first_call.h"

int main(int argc, char** argv) {
    if (argc != 3) return 1;
    const std::int64_t nanoseconds = kvjit::bench::monotonic_nanoseconds() - std::atoll(argv[2]);
    std::printf("%lld %.0f\n", static_cast<long long>(nanoseconds), kvjit::bench::memory_bytes("VmHWM:"));
    return 0;
}
