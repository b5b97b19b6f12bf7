// What libkvjit_compiler exports: one table of C functions, so that nothing of Clang or LLVM shows outside of it and
// neither side depends on the other's C++ runtime. Arguments and passes are the caller's (flags.h), who keeps them in
// the provenance.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives text, in pieces. The bytes are valid during the call only. */
typedef void (*kvjit_clang_sink)(void *context, const char *bytes, size_t size);

typedef struct kvjit_clang_request {
    const char *source;           /* need not end with NUL */
    size_t source_size;           /* bytes */
    const char *name;             /* what diagnostics, #line-less debug info and the object call the source */
    const char *const *arguments; /* Clang's cc1 arguments, the action ("-emit-obj") included, input and output not */
    size_t argument_count;
    /* LLVM's, from Clang's IR to code generation, in the language of opt -passes=; ",halves," stands before those that
     * may run on two halves of an object's functions at once, as code generation then does; after them ",-NAME" for
     * each pass of code generation that doesn't run, by its name in llc -print-after= */
    const char *passes;
    size_t passes_size;      /* bytes */
    kvjit_clang_sink output; /* the finished product, once; not called after a failure */
    kvjit_clang_sink log;    /* warnings and errors */
    void *context;           /* handed to both sinks */
} kvjit_clang_request;

/* Thread-safe, parallel. */
typedef struct kvjit_clang_functions {
    /* Compiles in memory: no file is read or written, no include path exists. Returns 0, or 1 after a failure that the
     * log explains; an ELF object with an undefined symbol is one. Works on a thread of its own, since Clang recurses
     * deeper than small stacks allow. */
    int (*compile)(const kvjit_clang_request *request);
    /* Hands the line that the instruction at `address` was compiled from to `line`, "cuda/store.cu:40", or nothing
     * where the object doesn't tell. `object`: `size` bytes, whose section headers have the addresses of the loaded
     * code. */
    void (*find_line)(const char *object, size_t size, uint64_t address, kvjit_clang_sink line, void *context);
} kvjit_clang_functions;

/* The number in the table's name is the version of this interface. */
#define KVJIT_CLANG_FUNCTIONS "kvjit_clang_5"

#ifdef __cplusplus
}
#endif
