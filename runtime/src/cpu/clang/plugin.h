// What libkvjit_compiler exports: one C function, so that nothing of Clang or LLVM shows outside of it and neither side
// depends on the other's C++ runtime. Arguments and passes are the caller's (flags.h), who keeps them in the
// provenance.
#pragma once

#include <stddef.h>

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
    const char *passes;      /* LLVM's, from Clang's IR to code generation, in the language of opt -passes= */
    size_t passes_size;      /* bytes */
    kvjit_clang_sink output; /* the finished product, once; not called after a failure */
    kvjit_clang_sink log;    /* warnings and errors */
    void *context;           /* handed to both sinks */
} kvjit_clang_request;

/* Compiles in memory: no file is read or written, no include path exists. Returns 0, or 1 after a failure that the log
 * explains; an ELF object with an undefined symbol is one. Thread-safe, parallel; works on a thread of its own, since
 * Clang recurses deeper than small stacks allow. The number in the name is the version of this interface. */
typedef int (*kvjit_clang_compile_function)(const kvjit_clang_request *request);
#define KVJIT_CLANG_COMPILE_SYMBOL "kvjit_clang_compile_2"

#ifdef __cplusplus
}
#endif
