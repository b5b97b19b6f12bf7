// The interface of emulated CUDA kernels and the emulator: the state of a thread, and what the emulator does for it.
// Kernels and the runtime include this file, which therefore includes no system header.
//
// Every thread of a block is a fiber with a stack of kStackBytes, aligned to its size. The thread's state lies in the
// stack's last kThreadBytes, so that code finds its own thread by masking a frame's address, and an object needs
// neither a symbol of the emulator nor a thread-local variable.
#pragma once

#include "common/abi.h"

namespace kvjit::emulation {

using abi::i64;

inline constexpr i64 kStackBytes = 64 * 1024;
inline constexpr i64 kThreadBytes = 512;
inline constexpr int kWarpLanes = 32;
inline constexpr i64 kSharedAlignment = 128;

/// A line of a template.
struct Site {
    const char* file;
    int line;

    /// As a default argument it is the line of the call.
    static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }
};

/// What all lanes of a warp, or all threads of a block, do together.
enum class Collective : int { kBarrier, kWarpBarrier, kShuffle, kBallot, kMma, kLoadMatrices };

struct AccessKind {
    bool write;
    int alignment;  // that the code assumes of the address
};

struct Thread;

/// What the emulator does for a thread. After an error no function returns: the thread is abandoned there. `where`: a
/// return address in the kernel's code, for errors.
struct Services {
    void (*barrier)(Thread& self, Site site);
    /// Waits for all lanes of the warp; the last one calls work(arguments), unless null. arguments[l] is lane l's.
    void (*collective)(Thread& self, Collective kind, Site site, void* argument, void (*work)(void* const* arguments));
    /// Distributes 16 bytes at each lane's `row` over `registers` as ldmatrix.x4 does.
    void (*load_matrices)(Thread& self, unsigned* registers, const void* row, bool transposed, Site site,
                          const void* where);
    void* (*shared_memory)(Thread& self, i64 bytes, Site site);
    void (*copy_async)(Thread& self, void* shared, const void* global, i64 bytes, bool valid, const void* where);
    void (*commit_copies)(Thread& self);
    void (*wait_copies)(Thread& self, int pending);
    unsigned (*atomic_add)(Thread& self, unsigned* address, unsigned value, const void* where);
    void (*thread_fence)(Thread& self);
    /// Checks a plain load or store of the kernel.
    void (*access)(Thread& self, const void* address, i64 bytes, AccessKind kind, const void* where);
};

struct Thread {
    const Services* services;
    i64 block_x, block_y;
    int index;
};

}  // namespace kvjit::emulation
