// What an emulated CUDA kernel and the emulator share: the state of a thread, and what the emulator does for it. The
// runtime includes this file too. No system header: compiled kernels see it.
//
// Every thread of a block is a fiber with a stack of kStackBytes, aligned to its size. The thread's state lies in the
// last kThreadBytes of it, so that code finds its own thread by masking a frame's address: an object needs no symbol of
// the emulator's and no thread-local variable.
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

    /// As a default argument: where the function with that argument is called.
    static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }
};

/// What all lanes of a warp, or all threads of a block, do together.
enum class Collective : int { kBarrier, kWarpBarrier, kShuffle, kBallot, kMma, kLoadMatrices };

struct AccessKind {
    bool write;
    int alignment;  // what the code takes the address for a multiple of
};

struct Thread;

/// What the emulator does for a thread. None returns after an error: the thread is left where it stands. `where` is a
/// return address in the kernel's code, for errors.
struct Services {
    void (*barrier)(Thread& self, Site site);
    /// Waits for all lanes of the warp; the last one calls work(arguments), arguments[l] being lane l's. work may be
    /// null.
    void (*collective)(Thread& self, Collective kind, Site site, void* argument, void (*work)(void* const* arguments));
    /// 16 bytes at `row` of each lane, as ldmatrix.x4 distributes them over `registers`.
    void (*load_matrices)(Thread& self, unsigned* registers, const void* row, bool transposed, Site site,
                          const void* where);
    void* (*shared_memory)(Thread& self, i64 bytes, Site site);
    void (*copy_async)(Thread& self, void* shared, const void* global, i64 bytes, bool valid, const void* where);
    void (*commit_copies)(Thread& self);
    void (*wait_copies)(Thread& self, int pending);
    unsigned (*atomic_add)(Thread& self, unsigned* address, unsigned value, const void* where);
    void (*thread_fence)(Thread& self);
    /// Each plain load and store of the kernel.
    void (*access)(Thread& self, const void* address, i64 bytes, AccessKind kind, const void* where);
};

struct Thread {
    const Services* services;
    i64 block_x, block_y;
    int index;
};

}  // namespace kvjit::emulation
