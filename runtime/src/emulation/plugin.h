// What libkvjit_emulation exports: one table of C functions, so that neither side depends on the other's C++ runtime.
// The library runs CUDA kernels that libkvjit_compiler has compiled and libkvjit has loaded, and links neither.
#pragma once

#include "kvjit/kvjit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvjit_emulator kvjit_emulator;

/* Writes the line that the instruction at `address` was compiled from, "cuda/store.cu:40", cut to `size` bytes with the
 * NUL at its end. */
typedef void (*kvjit_emulation_line)(void *context, uint64_t address, char *text, size_t size);

/* A grid of x * y blocks. */
typedef struct kvjit_emulation_launch {
    void *kernel; /* void (const void *args), made with templates/cuda/machine/emulated.h */
    uint32_t x, y, threads, shared_bytes;
    const void *args; /* copied */
    size_t args_bytes;
} kvjit_emulation_launch;

typedef struct kvjit_emulation_functions {
    /* `seed` decides on the order of blocks and threads: same seed, same run. `line` gets `context`, and is called when
     * an error needs it. NULL: no memory. */
    kvjit_emulator *(*create)(uint64_t seed, kvjit_emulation_line line, void *context);
    void (*destroy)(kvjit_emulator *emulator);
    /* Runs at once, and in parallel where several threads ask. KVJIT_CUDA_ERROR: a launch beyond what GPUs take, or
     * what the kernel did wrong, with the templates' lines; tensors then hold whatever it had written.
     * KVJIT_OUT_OF_MEMORY. `error` is written in full, unless the answer is KVJIT_OK. */
    kvjit_status (*launch)(kvjit_emulator *emulator, const kvjit_emulation_launch *launch, kvjit_error *error);
} kvjit_emulation_functions;

/* The number in the table's name is the version of this interface and of templates/cuda/machine/emulated/thread.h,
 * through which kernels call the emulator. */
#define KVJIT_EMULATION_FUNCTIONS "kvjit_emulation_1"

#ifdef __cplusplus
}
#endif
