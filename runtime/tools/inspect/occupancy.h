// How many blocks of a CUDA kernel a multiprocessor runs at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvjit::tool {

/// What a block takes.
struct BlockNeeds {
    std::int64_t threads;
    int registers;              // of a thread
    std::int64_t shared_bytes;  // static and dynamic
};

struct Occupancy {
    int blocks;             // of a multiprocessor
    int warps, most_warps;  // of these blocks, and of any
    std::string limit;      // what allows no more: "registers", "shared memory", "threads" or "blocks"
};

/// By the limits that NVIDIA publishes for the architecture ("CUDA C++ Programming Guide", "Technical Specifications
/// per Compute Capability"). nullopt: this version of kvjit doesn't know them. `architecture`: "sm_90a".
std::optional<Occupancy> occupancy(const std::string& architecture, const BlockNeeds& needs);

}  // namespace kvjit::tool
