// What the benchmark of starting processes and the process that it starts agree on.
#pragma once

#include <time.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace kvjit::bench {

inline constexpr char kFirstCallSpec[] =
    "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f16,quant_bit=8,cache_mode=page_table,layout=L2HTD";

/// The same clock in every process of a machine.
inline std::int64_t monotonic_nanoseconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

/// A size that /proc/self/status knows, in bytes: "VmRSS:", "VmHWM:".
inline double memory_bytes(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        double kilobytes = 0;
        if (word == name && status >> kilobytes) return kilobytes * 1024;
    }
    return 0;
}

}  // namespace kvjit::bench
