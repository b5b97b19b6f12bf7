/* kvjit: attention and KV-cache kernels, specialised for one configuration and compiled at first use.
 *
 * The C ABI. C++17 users include kvjit.hpp, a thin ownership layer over this header.
 *
 *   spec + target -> kernel          kvjit_engine_kernel      microseconds; compiles nothing
 *   kernel + batch -> plan           kvjit_plan_create        once a step: checks, splits, compiles what is missing
 *   plan + tensors + layer -> bytes  kvjit_run                once a layer: no allocation, no string
 *
 * Conventions
 *   - Every struct but kvjit_tensor begins with struct_size; kvjit_*_init functions set fields to their defaults.
 *   - Structs grow at their end. Functions *_sized take sizeof(struct) as the caller compiled it and never touch bytes
 *     beyond it. A struct of a newer header is refused where it is used; *_init_sized functions set its further bytes
 *     to 0. The functions without _sized are inline, so that the size is the program's and not the library's; bindings
 *     of other languages call *_sized. A struct shorter than this header's ends with one of its fields, or with the
 *     padding after it; any other struct_size is KVJIT_BAD_ARGUMENT, also of a struct that another one points to. Two
 *     functions can't report that: kvjit_error_init_sized does nothing for less than the first version's struct, and
 *     kvjit_engine_get_stats writes nothing.
 *   - Pointers other than `context` must not be NULL unless their function says so: fallible functions then return
 *     KVJIT_BAD_ARGUMENT, others do nothing and return 0.
 *   - Any fallible function may return KVJIT_OUT_OF_MEMORY and KVJIT_INTERNAL; on CUDA targets also KVJIT_CUDA_ERROR.
 *   - Every fallible function returns a kvjit_status and describes a failure in *error (may be NULL).
 *   - A refused call changes nothing: no output, cache or scale byte, no handle.
 *   - Sizes and strides count elements unless a name says bytes. Axis names are those of docs/semantics.md.
 *   - The caller owns each handle that it is given, and releases it once, after its last use on any thread. Handles are
 *     reference-counted where a *_retain exists; releasing NULL is legal.
 *   - Callbacks (sinks, the log, an executor) return as C functions do: they must not throw.
 */
#ifndef KVJIT_KVJIT_H
#define KVJIT_KVJIT_H

#include <stddef.h>
#include <stdint.h>

#include "kvjit/version.h"

#if defined(__GNUC__)
#define KVJIT_API __attribute__((visibility("default")))
#else
#define KVJIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ------------------------------------------------------------------------------------------ */

/* The version of the library that is loaded, "0.1.0" say. Static storage. Thread-safe. KVJIT_VERSION is that of the
 * headers that the program was compiled with; docs/abi.md says which go together. */
KVJIT_API const char *kvjit_version(void);
/* The same as a number, as KVJIT_VERSION_NUMBER is. Thread-safe. */
KVJIT_API int32_t kvjit_version_number(void);

/* ---- Errors ------------------------------------------------------------------------------------------- */

typedef enum kvjit_status {
    KVJIT_OK = 0,
    KVJIT_BAD_SPEC = 1,     /* a spec field has an illegal value, or fields contradict each other */
    KVJIT_BAD_TARGET = 2,   /* the target is unknown, or this machine or process can't run it */
    KVJIT_BAD_ARGUMENT = 3, /* a null or misaligned pointer, a scalar out of range */
    KVJIT_BAD_DTYPE = 4,    /* a tensor's element type differs from what the spec says */
    KVJIT_BAD_SHAPE = 5,    /* a tensor's rank, extent or stride */
    KVJIT_BAD_INDEX = 6, /* an entry of one of the batch's arrays (seqstarts, cachestarts, ...), or of a call's ids */
    KVJIT_NOT_FOUND = 7, /* compiling is switched off, and no readable store has the kernel */
    KVJIT_COMPILER_MISSING = 8, /* libkvjit_compiler (Clang), or for CUDA libnvrtc, can't be opened */
    KVJIT_COMPILE_FAILED = 9,   /* the compiler refused the source; the message holds its log */
    KVJIT_BAD_FILE = 10,        /* a file is unreadable, truncated or malformed */
    KVJIT_OUT_OF_MEMORY = 11,
    KVJIT_INTERNAL = 12,  /* a defect of kvjit itself: please report it with the message */
    KVJIT_CUDA_ERROR = 13 /* CUDA, or the emulator, refused or failed; the message says what and what to do */
} kvjit_status;

/* The name of a status, "KVJIT_BAD_SHAPE" say. Static storage, never NULL. Thread-safe. */
KVJIT_API const char *kvjit_status_name(kvjit_status status);

/* A failure. Caller-owned, refers to no other memory. `message` is a whole sentence that repeats the other members. */
typedef struct kvjit_error {
    uint32_t struct_size;
    int32_t status;     /* kvjit_status */
    int64_t value;      /* what was given; 0 where there is no number */
    int64_t limit;      /* what was allowed; 0 where there is no number, or no single one */
    int64_t sequence;   /* which sequence of the batch, -1 for none */
    char argument[64];  /* "seqstarts", "cache.shape[1]", ... */
    char message[1920]; /* NUL-terminated, truncated if longer */
} kvjit_error;

KVJIT_API void kvjit_error_init_sized(kvjit_error *error, size_t size);
static inline void kvjit_error_init(kvjit_error *error) {
    kvjit_error_init_sized(error, sizeof *error);
}

/* Receives `size` bytes of text, not NUL-terminated, once or in pieces. They are valid during the call only. */
typedef void (*kvjit_sink)(void *context, const char *text, size_t size);

/* ---- What a kernel computes: the spec ----------------------------------------------------------------- */

typedef enum kvjit_op {
    KVJIT_OP_KEY_VALUE_CACHE = 1,            /* KeyValueCache: store new keys and values, read all back */
    KVJIT_OP_MULTI_HEAD_ATTENTION = 2,       /* MultiHeadAttention: over packed keys and values, no cache */
    KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION = 3, /* MultiHeadCacheAttention: store, then attend over the cache */
    KVJIT_OP_MERGE = 4,                      /* Merge: combine partial attention outputs by their lse */
    KVJIT_OP_RELAYOUT = 5                    /* Relayout: copy tokens from one cache to another, of any two formats */
} kvjit_op;

typedef enum kvjit_dtype {
    KVJIT_AUTO = 0, /* in a spec: follow t1 */
    KVJIT_F32 = 1,
    KVJIT_F16 = 2,
    KVJIT_BF16 = 3,
    KVJIT_I8 = 4,
    KVJIT_U8 = 5, /* two int4 codes a byte: element 2i in the low nibble of byte i */
    KVJIT_I32 = 6,
    KVJIT_I64 = 7
} kvjit_dtype;

/* In a spec's to_ field: the value of the field without to_. */
#define KVJIT_SAME (-1)

typedef enum kvjit_cache_mode {
    KVJIT_OFFSET = 0,         /* slot = cachestarts[b] + t */
    KVJIT_TOKEN_TABLE = 1,    /* slot = cachestarts[kvstarts[b] + t] */
    KVJIT_PAGE_TABLE = 2,     /* slot = cachestarts[b, t / page_size] + t % page_size: first slots, not page numbers */
    KVJIT_BLOCK_TABLE = 3,    /* block cachestarts[b, t / page_size], token t % page_size in it */
    KVJIT_BLOCK_POINTERS = 4, /* the block at address cachestarts[b, t / page_size], token t % page_size in it */
    KVJIT_SEQUENCE_TABLE = 5  /* block cachestarts[b], token t in it: one entry a sequence */
} kvjit_cache_mode;

/* Plain values; copy freely. The field table in generator/src/spec_fields.cc parses, prints, explains and checks each.
 * "Not yet": the field is read, printed and checked, but this version has no kernels for it: kvjit_engine_kernel
 * refuses it with KVJIT_BAD_SPEC. */
typedef struct kvjit_spec {
    uint32_t struct_size;
    int32_t op;             /* kvjit_op */
    int32_t head_dim;       /* D: a multiple of 8, 8..512 */
    int32_t value_head_dim; /* D of values and outputs; 0: head_dim. Others: not yet */
    int32_t group;          /* G = num_heads / num_kv_heads, 1..256 */
    int32_t t1;             /* query, current_key, current_value, attn_mask, outputs */
    int32_t t2;             /* cache elements when quant_bit is 0; KVJIT_AUTO: t1 */
    int32_t t3;             /* quantisation scales; KVJIT_AUTO: t1 */
    int32_t quant_bit;      /* 0, 8 or 4 */
    int32_t quant_group;    /* consecutive elements of D that share a scale: D or a power of two from 4 dividing it */
    int32_t cache_mode;     /* kvjit_cache_mode */
    int32_t page_size;      /* tokens a page or block; page_table, block_table and block_pointers only */
    int32_t index_type;     /* elements of the table, cachestarts: KVJIT_I64 or KVJIT_I32; addresses: KVJIT_I64 */
    int32_t starts_type;    /* elements of the batch's other arrays, seqstarts and so on: KVJIT_I64 or KVJIT_I32 */
    int32_t is_causal;      /* 0 or 1: mask keys past the query in sequences b >= decoding_batches */
    int32_t is_alibi;       /* 0 or 1: add slope[h] * dist; implies causal masking everywhere */
    int32_t has_window;     /* 0 or 1: batch.window_left and window_right count */
    int32_t has_soft_cap;   /* 0 or 1: batch.soft_cap counts */
    int32_t has_sinks;      /* 0 or 1: runs take sinks */
    int32_t attn_mask;      /* rank of the additive mask: 0 (none), 2 (S, W) or 3 (H, S, W) */
    /* Axis orders, NUL-padded. `layout` is the cache's, "L2HTD", "N2LTHD", ...; for block_pointers it is that of one
     * block, "2LTHD". Without a 2 it is key_cache's, and value_cache's unless value_layout has another. A small letter
     * with a number is the inner part of a split axis: "NHDTd8" has D/8 pieces of 8 elements, d last; t splits T, in
     * modes with blocks of page_size tokens. Layouts with split axes, or D elsewhere than last, are for KeyValueCache
     * and Relayout, without quant_bit. */
    char layout[16];
    char value_layout[16]; /* "": as layout */
    /* Relayout only: the cache that it copies to. The fields without to_ are those of the cache that it copies from; a
     * to_ field that is KVJIT_SAME, the default, takes the value of the one without to_. */
    int32_t to_t2;
    int32_t to_t3;
    int32_t to_quant_bit;
    int32_t to_quant_group;
    int32_t to_cache_mode;
    int32_t to_page_size;
    int32_t to_index_type;
    char to_layout[16];       /* "": as layout and value_layout */
    char to_value_layout[16]; /* "": as to_layout */
} kvjit_spec;

/* Sets all fields that the program's struct has to their defaults. Thread-safe. */
KVJIT_API void kvjit_spec_init_sized(kvjit_spec *spec, size_t size);
static inline void kvjit_spec_init(kvjit_spec *spec) {
    kvjit_spec_init_sized(spec, sizeof *spec);
}

/* Reads `field=value` pairs, separated by commas or white space, over the defaults:
 *     op=MultiHeadCacheAttention,head_dim=128,group=4,cache_mode=page_table,layout=L2HTD,quant_bit=8
 * `layout` also takes names of engines' layouts (kvjit_spec_layouts), which set further fields: "vllm:LBNHC" is
 * layout=LNTH2D and cache_mode=block_table. Such a field that is also given, before or after, must agree with it.
 * PMX's names need no "pmx:" ("r1:3"), those of its revision 2 nothing but the number ("3").
 * Errors: KVJIT_BAD_SPEC names the field, what it got and what it takes, also where a program's older struct has no
 * room for the field; KVJIT_BAD_ARGUMENT: null, a size that no struct has. *spec is then unchanged. Thread-safe. */
KVJIT_API kvjit_status kvjit_spec_parse_sized(const char *text, kvjit_spec *spec, size_t size, kvjit_error *error);
static inline kvjit_status kvjit_spec_parse(const char *text, kvjit_spec *spec, kvjit_error *error) {
    return kvjit_spec_parse_sized(text, spec, sizeof *spec, error);
}

/* Passes the canonical text to the sink: fields in table order, defaults omitted. parse(print(s)) == s. Errors:
 * KVJIT_BAD_ARGUMENT, KVJIT_BAD_SPEC. Thread-safe. */
KVJIT_API kvjit_status kvjit_spec_print(const kvjit_spec *spec, kvjit_sink sink, void *context, kvjit_error *error);

/* Calls `row` once a field: its name, what it takes, its default and one line of explanation. Thread-safe. */
KVJIT_API void kvjit_spec_fields(void (*row)(void *context, const char *name, const char *takes, const char *def,
                                             const char *help),
                                 void *context);

/* Calls `row` once a name that `layout` takes: the name, the order of axes that it stands for, the other fields that it
 * sets ("cache_mode=block_table", "" if none), and who has such a cache. A spec stores what the name sets, not the
 * name. Thread-safe. */
KVJIT_API void kvjit_spec_layouts(void (*row)(void *context, const char *name, const char *order, const char *sets,
                                              const char *users),
                                  void *context);

/* Derives the spec of another op from an engine's spec: `spec` with op `op`, and the defaults in all fields that don't
 * count for it, because of the op (KeyValueCache has no attn_mask) or of another field (without quant_bit t3 means
 * nothing). Everywhere else such a field with another value is refused, as it would change nothing. `result` may be
 * `spec`.
 * Errors: KVJIT_BAD_ARGUMENT, KVJIT_BAD_SPEC; *result is then unchanged. Thread-safe. */
KVJIT_API kvjit_status kvjit_spec_for_op_sized(const kvjit_spec *spec, kvjit_op op, kvjit_spec *result, size_t size,
                                               kvjit_error *error);
static inline kvjit_status kvjit_spec_for_op(const kvjit_spec *spec, kvjit_op op, kvjit_spec *result,
                                             kvjit_error *error) {
    return kvjit_spec_for_op_sized(spec, op, result, sizeof *result, error);
}

/* Reads a list of specs, a line each, as kvjit_spec_parse reads one, and hands each to `take`, once, in the order of
 * the text. What follows a # is a comment. A field may have several values, in braces: {f16,f32}, {64..256..64} (64,
 * 128, 192, 256; without a step it is 1), {8,64..128..32}. The line then stands for each combination:
 *     op={KeyValueCache,MultiHeadCacheAttention} head_dim={64,128} quant_bit={0,8} quant_group={8,32}
 * A field that doesn't count for a combination has its default there, as kvjit_spec_for_op has it: without quant_bit
 * there is one quant_group, so these 16 combinations are 12 specs. Illegal combinations are left out, as they have no
 * kernel, and passed to `left_out` (which may be NULL) with the reason. But a value that no spec of its line has is an
 * error, as is a line without braces that kvjit_spec_parse refuses. `max_combinations`: the limit of all lines'
 * combinations together, left out or repeated ones included; from 1; KVJIT_MAX_COMBINATIONS, or more on purpose. Lines
 * count from 1 on. Errors: KVJIT_BAD_SPEC, also for too many combinations; the message begins with the line.
 * KVJIT_BAD_ARGUMENT. Neither function is called then. Thread-safe. */
#define KVJIT_MAX_COMBINATIONS 10000
KVJIT_API kvjit_status kvjit_spec_list_parse_sized(const char *text, int64_t max_combinations,
                                                   void (*take)(void *context, int64_t line, const kvjit_spec *spec),
                                                   void (*left_out)(void *context, int64_t line,
                                                                    const char *combination, const char *reason),
                                                   void *context, size_t size, kvjit_error *error);
static inline kvjit_status kvjit_spec_list_parse(const char *text, int64_t max_combinations,
                                                 void (*take)(void *context, int64_t line, const kvjit_spec *spec),
                                                 void (*left_out)(void *context, int64_t line, const char *combination,
                                                                  const char *reason),
                                                 void *context, kvjit_error *error) {
    return kvjit_spec_list_parse_sized(text, max_combinations, take, left_out, context, sizeof(kvjit_spec), error);
}

/* ---- Where it runs: the target ------------------------------------------------------------------------ */

/* An instruction set, resolved: every known feature of a CPU, present or absent, or a CUDA architecture. Machines with
 * equal targets share code. Immutable; engines and kernels don't need it after the call that takes it. */
typedef struct kvjit_target kvjit_target;

/* `name` is one of
 *     host             this machine's CPU, from CPUID and XGETBV
 *     x86-64, x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-fp16, x86-64-v4-amx
 *                      a level that works on any machine that has it; with more features: x86-64-v3+avxvnni
 *     cuda, cuda:N     the GPU of ordinal N (0): its own architecture
 *     sm_80, sm_90a .. a CUDA architecture, whatever this machine has; one that some version of CUDA knows
 *     cuda-emulated, cuda-emulated+wgmma
 *                      CUDA kernels on this machine's CPU, slow and checked: for tests and debugging; with +wgmma those
 *                      of sm_90a
 * Where NVRTC doesn't know an architecture, kernels are compiled for the newest one that it knows and
 * whose code runs there: their identity (kvjit_kernel_emit) names that one.
 *
 * Errors: KVJIT_BAD_TARGET; for cuda KVJIT_CUDA_ERROR where there is no usable GPU. Thread-safe. */
KVJIT_API kvjit_status kvjit_target_create(const char *name, kvjit_target **target, kvjit_error *error);
KVJIT_API void kvjit_target_release(kvjit_target *target);
/* Calls `row` once a name that kvjit_target_create takes, with one line of explanation: all levels of CPUs and all
 * architectures of CUDA, whatever this machine has. Further features of CPUs (+avxvnni), ordinals of GPUs beyond 0 and
 * architectures that only an installed NVRTC knows are not in the list, nor is cuda-emulated+wgmma. Thread-safe. */
KVJIT_API void kvjit_target_list(void (*row)(void *context, const char *name, const char *help), void *context);
/* The canonical text, as the identities of kernels have it: see kvjit_target_create for the exception. Targets that
 * differ in +wgmma alone have one text, as their kernels' variants tell them apart. Thread-safe. */
KVJIT_API void kvjit_target_print(const kvjit_target *target, kvjit_sink sink, void *context);

/* ---- Engine: finds, compiles and keeps kernels --------------------------------------------------------- */

typedef struct kvjit_engine kvjit_engine;

/* Higher levels are more important. What each level has: docs/compiling.md, "The log". */
typedef enum kvjit_log_level {
    KVJIT_LOG_TRACE = -2, /* each run */
    KVJIT_LOG_DEBUG = -1, /* each image that is taken from memory, a bundle or the disk cache; each plan */
    KVJIT_LOG_INFO = 0,   /* each compile and each program that is refused; recorded calls */
    KVJIT_LOG_WARNING = 1 /* what works otherwise than expected */
} kvjit_log_level;

typedef struct kvjit_engine_options {
    uint32_t struct_size;
    int32_t jit;              /* 1: compile on a miss; 0: a miss is KVJIT_NOT_FOUND; -1: as KVJIT_JIT says (on|off) */
    const char *cache_dir;    /* NULL: $KVJIT_CACHE_DIR, else $XDG_CACHE_HOME/kvjit, else ~/.cache/kvjit; "": none */
    int64_t cache_max_bytes;  /* the disk cache is pruned to this, least recently used first; from 0; default:
                                 $KVJIT_CACHE_MAX_BYTES, else 512 MiB */
    const char *template_dir; /* NULL: $KVJIT_TEMPLATE_DIR, else the templates inside the library */
    const char *compiler;     /* path of libkvjit_compiler; NULL: $KVJIT_COMPILER, else beside the library */
    /* Called with messages, a line each, on any threads, on several at once; NULL: no log. It must not throw, and not
     * call kvjit for the engine that calls it. kvjit itself prints nothing, unless $KVJIT_LOG says from which level on
     * messages go to standard error, with or without `log`; without a log, mistakes in its variables go there. */
    void (*log)(void *context, int32_t level, const char *message);
    void *log_context;
    int64_t max_idle_kernels; /* unreferenced kernels that stay for later requests; from 0; default 1024 */
    const char *bundle_key;   /* 64 hexadecimal digits: the Ed25519 public key that bundles must be signed by; NULL: any
                                 signature or none */
    /* A file to which each spec whose programs are requested is appended, with target and program, each once a process:
     * a list of specs (kvjit_spec_list_parse). NULL: $KVJIT_TRACE_SPECS, else none; "": none. A failed write is logged
     * once. */
    const char *trace_specs;
    /* Called when a sealed engine has compiled (kvjit_engine_seal), with the spec's canonical text and the program's
     * name (kvjit_program_list), under the rules of `log`; may be NULL. */
    void (*on_late_compile)(void *context, const char *spec, const char *program);
    void *late_compile_context;
    /* 1, the default: kernels for CPUs with AMX use it, for which this process asks the system when a program that does
     * is first needed, or a plan's split depends on it: that may be refused, and limits all threads' signal stacks
     * (docs/compiling.md, "AMX"); 0: none uses it, and nothing is asked. KVJIT_CPU_MASK=amx-tile takes AMX from this
     * machine for the whole process. */
    int32_t amx;
    /* Which calls of the engine's kernels to record, and the folder that gets a file for each: see kvjit_engine_record.
     * NULL: $KVJIT_RECORD, else none; "": none. */
    const char *record;
    /* The least kvjit_log_level that `log` is called with; default KVJIT_LOG_INFO. Messages that go nowhere cost a
     * branch. */
    int32_t log_level;
    /* 1: runs are counted, for kvjit_engine_run_stats, which costs each about 0.1 us, and a plan a look at each
     * sequence's lengths; 0: they aren't; -1, the default: as KVJIT_COUNT_RUNS says (0 or 1). When the engine is
     * released, counts go to its log, at KVJIT_LOG_INFO. */
    int64_t count_runs;
} kvjit_engine_options;

KVJIT_API void kvjit_engine_options_init_sized(kvjit_engine_options *options, size_t size);
static inline void kvjit_engine_options_init(kvjit_engine_options *options) {
    kvjit_engine_options_init_sized(options, sizeof *options);
}

/* `options` may be NULL, and what it points to need not outlive the call. An unusable cache folder is no error: kernels
 * are then kept in memory only, which is logged once; so are variables of the environment (docs/compiling.md) that are
 * not understood. An engine serves any number of threads at once. It may be released at any time: kernels and plans
 * keep what they need of it alive. Errors: KVJIT_BAD_ARGUMENT for an illegal option or KVJIT_JIT. Thread-safe. */
KVJIT_API kvjit_status kvjit_engine_create(const kvjit_engine_options *options, kvjit_engine **engine,
                                           kvjit_error *error);
KVJIT_API void kvjit_engine_release(kvjit_engine *engine);
/* Drops the unreferenced kernels, and unmaps those of their programs that no other kernel or plan has. A later request
 * makes them anew, from the disk cache if that has them. Returns the number of kernels. Thread-safe. */
KVJIT_API size_t kvjit_engine_trim(kvjit_engine *engine);
/* Declares that everything is prepared: each compile that begins from now on is late. It is done all the same, but
 * counted in kvjit_engine_stats.late_compiles and passed to options.on_late_compile, so that an engine's test can
 * require that there be none. Thread-safe. */
KVJIT_API void kvjit_engine_seal(kvjit_engine *engine);

/* Records calls of kvjit_run from now on, of all the engine's kernels and plans, for `kvjit replay`
 * (docs/recording.md): what went in, and what came out, a file each in the folder DIR, which is created where it is
 * missing. `setting` is "DIR" or "DIR:name=value,...", DIR without a colon; NULL or "" ends the recording. The names:
 *
 *     call=N         the N-th call alone, counted from 1
 *     every=N        the first of N calls, and so on
 *     layer=N        calls on this layer of the cache
 *     program=NAME   calls that run it (kvjit_program_list)
 *     max_files=N    default 100
 *     max_bytes=N    of all files together, default 1 GiB
 *     FIELD=VALUE    of a spec: calls of kernels that have this value
 *
 * Calls are counted as far as the other names let them pass. A call's result is what it is without recording. On CUDA
 * each recorded call copies and waits; while a stream is captured nothing is recorded. What can't be recorded or
 * written is logged, each reason once, and fails no call. Calls of op Relayout, and refused ones, are not recorded.
 * Files hold the tensors' contents, for the owner's eyes (mode 0600). Errors: KVJIT_BAD_ARGUMENT; the earlier setting
 * then stays. Thread-safe. */
KVJIT_API kvjit_status kvjit_engine_record(kvjit_engine *engine, const char *setting, kvjit_error *error);

/* Adds a bundle: kernels that were made at build time, in one file (docs/bundles.md). From now on the engine looks up
 * what kernels need in its bundles, in the order in which they were added, before the disk cache and before compiling.
 * Reads the index, nothing else, and keeps the file open: renaming or removing it changes nothing, and an entry that is
 * changed or truncated meanwhile is logged and skipped. Nothing of a refused bundle is used. Errors:
 * KVJIT_BAD_ARGUMENT; KVJIT_BAD_FILE with the reason: it can't be opened, is no bundle, damaged, cut short, of another
 * format version or kernel ABI, or not signed by bundle_key. Thread-safe. */
KVJIT_API kvjit_status kvjit_engine_add_bundle(kvjit_engine *engine, const char *path, kvjit_error *error);
/* The same for `size` bytes in memory, an array that was linked into the program, say. They are not copied, and must
 * stay unchanged until the engine and all its kernels and plans are released. They need no alignment. */
KVJIT_API kvjit_status kvjit_engine_add_bundle_memory(kvjit_engine *engine, const void *bundle, size_t size,
                                                      kvjit_error *error);

typedef struct kvjit_engine_stats {
    uint32_t struct_size;
    int64_t compiles;             /* programs that the compiler made */
    int64_t disk_hits;            /* programs read from the disk cache */
    int64_t memory_hits;          /* requests served by the image of another kernel or thread */
    double compile_seconds;       /* summed over compiles, the compiler's loading excluded */
    double compiler_load_seconds; /* opening Clang: once a process, 0 if nothing was compiled */
    double disk_seconds;          /* reading, checking and loading of disk hits */
    int64_t bundle_hits;          /* programs read from bundles */
    double bundle_seconds;        /* reading, checking and loading of them */
    int64_t late_compiles;        /* of the compiles, those that began after kvjit_engine_seal */
} kvjit_engine_stats;

KVJIT_API void kvjit_engine_stats_init_sized(kvjit_engine_stats *stats, size_t size);
static inline void kvjit_engine_stats_init(kvjit_engine_stats *stats) {
    kvjit_engine_stats_init_sized(stats, sizeof *stats);
}
/* Counts since the engine was made, into a `stats` that kvjit_engine_stats_init has set up. Thread-safe. */
KVJIT_API void kvjit_engine_get_stats(const kvjit_engine *engine, kvjit_engine_stats *stats);

/* What the runs of one kernel came to. */
typedef struct kvjit_run_stats {
    uint32_t struct_size;
    int64_t runs;   /* that were not refused */
    double seconds; /* in kvjit_run and kvjit_relayout_run; of runs on CUDA, the launches alone */
    int64_t bytes;  /* of the runs' tensors, each element once, and of the cache's keys and values, with scales: those
                       that rows see, those of new tokens, or those that are copied, each once */
    int64_t operations; /* floating-point, of attention: 4 * D for each query head, row and key that the row sees */
} kvjit_run_stats;

/* Calls `row` for each kernel that has run, the one that took most time first, with the spec's canonical text and the
 * target's, which `kvjit inspect` and `kvjit bench` take; for none, unless options.count_runs is 1. What depends on
 * lengths counts as 0 in runs of plans whose arrays only the device has. Kernels that kvjit_engine_trim or
 * max_idle_kernels have dropped are not among them; of runs that are going on, some counts may be there before others.
 * Errors: KVJIT_BAD_ARGUMENT. Thread-safe. */
KVJIT_API kvjit_status kvjit_engine_run_stats_sized(const kvjit_engine *engine,
                                                    void (*row)(void *context, const char *spec, const char *target,
                                                                const kvjit_run_stats *stats),
                                                    void *context, size_t size, kvjit_error *error);
static inline kvjit_status kvjit_engine_run_stats(const kvjit_engine *engine,
                                                  void (*row)(void *context, const char *spec, const char *target,
                                                              const kvjit_run_stats *stats),
                                                  void *context, kvjit_error *error) {
    return kvjit_engine_run_stats_sized(engine, row, context, sizeof(kvjit_run_stats), error);
}

/* ---- Kernel -------------------------------------------------------------------------------------------- */

typedef struct kvjit_kernel kvjit_kernel;

/* A handle for `spec` on `target` (NULL: this machine). Checks the spec; compiles nothing. A repeated request is a hash
 * lookup, also after all its handles are released, unless more than max_idle_kernels are idle. Errors: KVJIT_BAD_SPEC,
 * KVJIT_BAD_TARGET. Thread-safe. */
KVJIT_API kvjit_status kvjit_engine_kernel(kvjit_engine *engine, const kvjit_spec *spec, const kvjit_target *target,
                                           kvjit_kernel **kernel, kvjit_error *error);
/* Adds a reference to release, and returns `kernel`. Both functions are thread-safe. */
KVJIT_API kvjit_kernel *kvjit_kernel_retain(kvjit_kernel *kernel);
KVJIT_API void kvjit_kernel_release(kvjit_kernel *kernel);

/* The programs of a kernel, as bits. A plan prepares those that its batch needs; kvjit_kernel_prepare, any of them. */
typedef enum kvjit_programs {
    KVJIT_PROGRAM_STORE = 1,
    KVJIT_PROGRAM_LOAD = 2,
    KVJIT_PROGRAM_DECODE = 4,  /* attend, few query rows */
    KVJIT_PROGRAM_PREFILL = 8, /* attend, many query rows */
    KVJIT_PROGRAM_MERGE = 16,  /* op Merge; on CPUs attention too */
    KVJIT_PROGRAM_CHECK = 32,  /* CUDA: checks index arrays on the device */
    KVJIT_PROGRAM_RELAYOUT = 64
} kvjit_programs;
/* All that the op has on the target, including those that a later library adds. */
#define KVJIT_ALL_PROGRAMS UINT32_MAX
/* Calls `row` once a bit of kvjit_programs that this library knows, with the program's name: "decode" for
 * KVJIT_PROGRAM_DECODE. Thread-safe. */
KVJIT_API void kvjit_program_list(void (*row)(void *context, uint32_t program, const char *name), void *context);

/* Has the images of these programs ready, compiling what no store has; programs that the op lacks are ignored. Errors:
 * KVJIT_BAD_ARGUMENT (a bit of no program), KVJIT_COMPILER_MISSING and KVJIT_NOT_FOUND (with the line of a specs.txt
 * that puts the program into a bundle; the latter also with what bundles have of it), KVJIT_COMPILE_FAILED,
 * KVJIT_BAD_FILE (compiling is switched off, and a bundle or the disk cache can't be read: the message says why),
 * KVJIT_BAD_TARGET (an image for another machine can't be loaded here, nor any where a policy forbids running generated
 * code, nor one that uses AMX where that is refused and no lesser target may serve: docs/compiling.md). Thread-safe: an
 * image is compiled once, however many threads and processes request it. */
KVJIT_API kvjit_status kvjit_kernel_prepare(kvjit_kernel *kernel, uint32_t programs, kvjit_error *error);

typedef struct kvjit_prepare_options {
    uint32_t struct_size;
    uint32_t programs;   /* bits of kvjit_programs; default KVJIT_ALL_PROGRAMS */
    int32_t num_threads; /* programs that are compiled at once, one by the calling thread; 0: one for each core it may
                          * run on. A program for a CPU has a second thread for its last steps */
    /* Called when a spec's programs are ready, or one of them has failed, as `failure` describes (else NULL): `done` of
     * `total` specs are then finished. Called on any of the threads, on one at a time, under the rules of the engine's
     * log. May be NULL. */
    void (*progress)(void *context, int64_t done, int64_t total, const char *spec, const kvjit_error *failure);
    void *progress_context;
} kvjit_prepare_options;

KVJIT_API void kvjit_prepare_options_init_sized(kvjit_prepare_options *options, size_t size);
static inline void kvjit_prepare_options_init(kvjit_prepare_options *options) {
    kvjit_prepare_options_init_sized(options, sizeof *options);
}

/* Prepares the kernels of `count` specs, as kvjit_kernel_prepare does one. A spec that fails doesn't stop the others.
 * Afterwards the kernels are idle, so an engine's max_idle_kernels should be at least `count`. `target`: NULL for this
 * machine; `options` may be NULL; `spec_size`: sizeof(kvjit_spec) as the program's header has it. Errors: the status of
 * the first spec in their order that failed; the message says how many did, which was the first, and why; argument
 * "specs[3]", value: how many failed. KVJIT_BAD_ARGUMENT before anything is prepared. Thread-safe. */
KVJIT_API kvjit_status kvjit_engine_prepare_sized(kvjit_engine *engine, const kvjit_spec *specs, size_t count,
                                                  const kvjit_target *target, const kvjit_prepare_options *options,
                                                  size_t spec_size, kvjit_error *error);
static inline kvjit_status kvjit_engine_prepare(kvjit_engine *engine, const kvjit_spec *specs, size_t count,
                                                const kvjit_target *target, const kvjit_prepare_options *options,
                                                kvjit_error *error) {
    return kvjit_engine_prepare_sized(engine, specs, count, target, options, sizeof *specs, error);
}

typedef enum kvjit_stage {
    KVJIT_STAGE_IDENTITY = 0, /* identity and provenance texts; the latter if a store has it, or there is a compiler */
    KVJIT_STAGE_SOURCE = 1,   /* the rendered translation unit */
    KVJIT_STAGE_IR = 2,       /* optimised LLVM IR; not for CUDA */
    KVJIT_STAGE_ASM = 3,      /* target assembly; for CUDA, PTX */
    KVJIT_STAGE_LOG = 4,      /* what the compiler said; for CUDA registers, spills and shared memory */
    KVJIT_STAGE_OBJECT = 5,   /* the bytes that are loaded: an ELF object, or a cubin; of one program at a time */
    KVJIT_STAGE_IR_UNOPTIMISED = 6 /* LLVM IR as Clang makes it, before any pass; not for CUDA */
} kvjit_stage;

/* Passes `stage` of each of these programs' images to the sink, one after the other: of the image that the kernel's
 * plans run, else of the one that they would run (kvjit_kernel_images tells which). What a bundle or the disk cache has
 * is read there, without a compiler, and nothing is loaded: the target may be one that this machine can't run. What no
 * store has is rendered and compiled for this call alone, whatever `jit` says; so is the object of an image that this
 * engine compiled. IR, unoptimised or not, and ASM are always compiled, of the image's source. Only what the image was
 * made of is passed on: digests are compared. Errors: KVJIT_BAD_FILE where the bundle or the entry has changed since,
 * is damaged or can't be read; KVJIT_NOT_FOUND where the entry is gone, or a bundle was made without logs; for SOURCE
 * either of them only where the templates don't give the same text again. KVJIT_BAD_ARGUMENT where the op has none of
 * the programs, or for OBJECT several of them (the limit is the bits that it has); those of the compiler;
 * KVJIT_BAD_FILE for templates. Thread-safe. */
KVJIT_API kvjit_status kvjit_kernel_emit(kvjit_kernel *kernel, uint32_t programs, kvjit_stage stage, kvjit_sink sink,
                                         void *context, kvjit_error *error);

/* The origin of an image's bytes. An image that several kernels share has the origin that it was first loaded from. */
typedef enum kvjit_origin {
    KVJIT_ORIGIN_NONE = 0,     /* neither memory nor a store has it: it would be compiled */
    KVJIT_ORIGIN_COMPILED = 1, /* this engine's compiler made it, whether or not the disk cache has it now */
    KVJIT_ORIGIN_DISK = 2,     /* the disk cache */
    KVJIT_ORIGIN_BUNDLE = 3    /* a bundle */
} kvjit_origin;

/* The image of one program. Texts are valid during the call only. */
typedef struct kvjit_image_info {
    uint32_t struct_size;
    uint32_t program;      /* a bit of kvjit_programs */
    int32_t origin;        /* kvjit_origin */
    int32_t is_loaded;     /* 1: the kernel's plans run it; 0: they would, once they need it */
    int32_t revision;      /* of the program's algorithm (docs/architecture.md) */
    int64_t object_bytes;  /* of KVJIT_STAGE_OBJECT; 0 without an origin */
    const char *name;      /* as logs, profilers and debuggers call it: "attend_decode-4f1c09d2" */
    const char *variant;   /* the algorithm's name, "simd" say */
    const char *target;    /* the image's, which may be less than the requested one; canonical text */
    const char *identity;  /* the whole of it, as KVJIT_STAGE_IDENTITY has it */
    const char *place;     /* file of the entry or bundle, "1234 bytes in memory"; else "" */
    int64_t block_threads; /* CUDA: threads of each block that plans launch; else 0 */
    int64_t shared_bytes;  /* CUDA: bytes of each block's dynamic shared memory, beside what the log has; else 0 */
} kvjit_image_info;

/* Calls `image` once for each of these programs that the op has, with what its image is, or would be: stores are
 * searched, nothing is compiled or loaded. After an error there is no call. Errors: KVJIT_BAD_ARGUMENT where the op has
 * none of the programs (the limit is the bits that it has); KVJIT_BAD_FILE where compiling is switched off and a store
 * that may have a program can't be read. Thread-safe. */
KVJIT_API kvjit_status kvjit_kernel_images_sized(kvjit_kernel *kernel, uint32_t programs,
                                                 void (*image)(void *context, const kvjit_image_info *info),
                                                 void *context, size_t size, kvjit_error *error);
static inline kvjit_status kvjit_kernel_images(kvjit_kernel *kernel, uint32_t programs,
                                               void (*image)(void *context, const kvjit_image_info *info),
                                               void *context, kvjit_error *error) {
    return kvjit_kernel_images_sized(kernel, programs, image, context, sizeof(kvjit_image_info), error);
}

/* Lists to the sink, for each of these programs that `spec` has on `target` (NULL: this machine), its algorithms in
 * order of preference: which one serves, and what those before it can't do. Compiles nothing. Where there is no kernel,
 * as no algorithm of some program serves, the list is passed all the same, and then the error is that of
 * kvjit_engine_kernel, KVJIT_BAD_SPEC. Other errors, before the sink is called: KVJIT_BAD_ARGUMENT where the op has
 * none of the programs (the limit is the bits that it has), KVJIT_BAD_SPEC, KVJIT_BAD_TARGET. Thread-safe. */
KVJIT_API kvjit_status kvjit_engine_explain(kvjit_engine *engine, const kvjit_spec *spec, const kvjit_target *target,
                                            uint32_t programs, kvjit_sink sink, void *context, kvjit_error *error);

/* Passes to the sink what differs between `before` and `after`, each a text of KVJIT_STAGE_IDENTITY, of this version of
 * kvjit or an older one, or identities alone, a line each, as errors have them: for each program a line for each
 * difference, in words, or "nothing". Programs are matched by their names; where each text has one, those two are
 * compared. Errors: KVJIT_BAD_ARGUMENT names the text, its line and what is wrong there. Thread-safe. */
KVJIT_API kvjit_status kvjit_identity_diff(const char *before, const char *after, kvjit_sink sink, void *context,
                                           kvjit_error *error);

/* ---- Tensors ------------------------------------------------------------------------------------------- */

#define KVJIT_MAX_RANK 8

/* A view of memory, which it doesn't own. Absent: all zero. An empty tensor may have data NULL. Other structs contain
 * this one, so it never changes its size. */
typedef struct kvjit_tensor {
    void *data;
    int32_t dtype; /* kvjit_dtype */
    int32_t rank;
    int64_t shape[KVJIT_MAX_RANK];
    int64_t strides[KVJIT_MAX_RANK]; /* in elements */
    int64_t reserved[2];             /* 0: anything else is KVJIT_BAD_ARGUMENT, for later versions' use */
} kvjit_tensor;

/* A view of `data` with `rank` extents and row-major strides; `shape` may be NULL for rank 0. An absent tensor where
 * the arguments are illegal: a rank above KVJIT_MAX_RANK, say. Thread-safe. */
KVJIT_API kvjit_tensor kvjit_tensor_contiguous(void *data, kvjit_dtype dtype, int32_t rank, const int64_t *shape);

/* ---- Plan: one step's batch ----------------------------------------------------------------------------- */

typedef struct kvjit_executor {
    uint32_t struct_size;
    int32_t concurrency; /* threads that work at once, the caller included: a hint for splitting, never for results */
    void *context;
    /* Calls task(argument, i) for each i in 0..count-1, on any threads, in any order, serially if it likes, and
     * returns when all have returned. Tasks never wait for each other. A task needs up to 1 MiB of stack. */
    void (*run)(void *context, void (*task)(void *argument, int64_t i), void *argument, int64_t count);
} kvjit_executor;

KVJIT_API void kvjit_executor_init_sized(kvjit_executor *executor, size_t size);
static inline void kvjit_executor_init(kvjit_executor *executor) {
    kvjit_executor_init_sized(executor, sizeof *executor);
}

typedef enum kvjit_check_level {
    KVJIT_CHECK_FULL = 0,  /* O(B + pages + new tokens): every slot too. The default */
    KVJIT_CHECK_BATCH = 1, /* O(B): the starts, not the tables */
    KVJIT_CHECK_NONE = 2   /* only what is O(1); a wrong index then reads or writes out of bounds */
    /* On CUDA a plan checks options.host_batch once. Without it, each run at a level above NONE launches one kernel
     * more that checks the device's arrays, at a cost that grows with the square of the new tokens' pages: a step of
     * many layers checks one plan and runs the others with NONE, or has a host_batch. kvjit_plan_synchronize reports
     * what the kernel finds. Stores stay inside the cache at every level. */
} kvjit_check_level;

/* The sequences of one call. The arrays stay the caller's and are read by every run of the plan: keep them alive until
 * the plan is released. alibi_slopes are copied, from host memory on every target.
 * On CPUs a plan has checked the arrays, and split the work by them: keep them unchanged, too.
 * On CUDA the other arrays, and the tensors of a run, lie where the GPU reaches them. There the arrays' contents may
 * change between runs, in the order of the plan's stream, within max_seqlen and max_kvlen: give both where runs are
 * captured and replayed with other lengths. Without them the host_batch's own lengths are the bounds. */
typedef struct kvjit_batch {
    uint32_t struct_size;
    int64_t batch_size;       /* B */
    int64_t num_heads;        /* H, query heads; 0: num_kv_heads * group */
    int64_t num_kv_heads;     /* Hkv; 0: num_heads / group; KeyValueCache: 0: num_heads, which else is ignored */
    int64_t num_layers;       /* L; default 1 */
    int64_t max_tokens;       /* MaxT: extent of axis T, of a sequence_table the tokens of each block; not for
                                 block_table and block_pointers, where it is page_size */
    int64_t num_blocks;       /* extent of axis N; block_table and sequence_table only */
    int64_t decoding_batches; /* the first sequences, whose new tokens see later ones, too: is_causal and window_right
                                 hide nothing there (is_alibi does). 0 is right for causal models, whose sequences
                                 of one new token it doesn't change. It doesn't tell which sequences decode, and
                                 chooses no program: numbers of new tokens do */
    int64_t max_seqlen;       /* upper bound of n; 0: unknown */
    int64_t max_kvlen;        /* upper bound of m; 0: unknown */
    /* Arrays of type void have elements of the spec's starts_type. */
    const void *seqstarts;    /* (B+1): sequence b's new tokens are rows seqstarts[b]..seqstarts[b+1]-1; at most 2^30 a
                                 call, where the host reads them */
    const void *kvstarts;     /* (B+1): and its keys kvstarts[b]..kvstarts[b+1]-1; at most 2^30 a sequence. Or NULL, and
                                 kvlens or last_page_len says how many keys there are: one of the three is given. Packed
                                 keys, token tables, masks and what KeyValueCache loads need this one */
    const void *start_pos;    /* (B): position of its first new token, the number of its keys less that of its new
                                 tokens; NULL: not checked. Cache operators only; ignored by a plan whose options say
                                 stores_nothing */
    kvjit_tensor cachestarts; /* offset, sequence_table (B); token_table (K); page_table, block_table, block_pointers
                                 (B, MaxP), or (entries) with rowstarts. With an axis L in front: a table a layer, all
                                 of which are checked, and each run reads its layer's. Addresses of blocks are those at
                                which the kernels reach them, multiples of an element's bytes, on CUDA of 16 */
    const void *rowstarts;    /* (B+1) or NULL: sequence b's table row begins at cachestarts[rowstarts[b]] (CSR) */
    const void *row_index;    /* (B) or NULL: sequence b's table row is cachestarts[row_index[b], :] */
    const float *alibi_slopes; /* (H) or NULL: the usual powers of two */
    float softmax_scale;       /* 0: 1/sqrt(head_dim) */
    int64_t num_repeat;        /* KeyValueCache outputs: copies of each kv head; default 1 */
    int64_t window_left;       /* keys that a row sees before its own position, where the spec has a window; -1,
                                * the default: all */
    int64_t window_right;      /* and after it, the same */
    float soft_cap;            /* finite and > 0 where the spec has one, else 0 */
    const void *kvlens;        /* (B): the sequences' keys, in place of kvstarts */
    const void *last_page_len; /* (B): keys of each sequence's last page, in place of kvstarts: m = (pages - 1) *
                                  page_size + last_page_len[b], pages = rowstarts[b+1] - rowstarts[b]; without pages m =
                                  0, and it is ignored. With rowstarts, in modes that have a page_size */
    kvjit_tensor scalestarts;  /* with the shape and strides of cachestarts: addresses of the scale blocks, which a
                                  quantised block_pointers cache has, and no other */
    kvjit_tensor store_slots;  /* absent, or (S) or (L, S), KVJIT_I64 or KVJIT_I32: where new tokens go, whatever the
                                  table says; below 0: nowhere. Slots are numbered through blocks: slot / page_size is
                                  the block (sequence_table: / max_tokens). Not for block_pointers */
} kvjit_batch;

KVJIT_API void kvjit_batch_init_sized(kvjit_batch *batch, size_t size);
static inline void kvjit_batch_init(kvjit_batch *batch) {
    kvjit_batch_init_sized(batch, sizeof *batch);
}

typedef struct kvjit_plan_options {
    uint32_t struct_size;
    int32_t check_level;            /* kvjit_check_level */
    const kvjit_executor *executor; /* NULL: the library's own pool. Copied; its context is the caller's */
    /* NULL: the plan allocates. 64-byte aligned; on CUDA device memory. The plan's alone from its creation until it is
     * released and what it ran is done.
     * CUDA: all this in the order of `stream`. kvjit_plan_create enqueues its writes (zeros, slopes) there, after what
     * the stream holds, and doesn't wait; so memory that a stream-ordered allocator gave for this stream can be passed
     * at once, and after the plan's last run be freed there, or passed to the stream's next plan. A graph launched
     * elsewhere first waits for what the stream held when the plan was made. While `stream` is being captured, memory
     * is written at once, outside of the graph: then no queued work may use it any more, and no other node of the graph
     * may ever (not memory of the capture's own pool). KVJIT_CUDA_ERROR where another stream's capture closes the
     * default stream. */
    void *workspace;
    size_t workspace_bytes; /* size of `workspace`; too small is an error whose limit is what is needed */
    uint32_t num_threads;   /* of the library's own pool when executor is NULL, up to 1024; 0: one for each core
                               that the calling thread may run on, and there are never more */
    /* CUDA targets only: */
    void *stream;                  /* CUstream or cudaStream_t that every run goes to; NULL: the default stream */
    const kvjit_batch *host_batch; /* the same batch with its arrays in host memory, checked once, read only by
                                      plan_create; NULL: the GPU checks, as check_level says */
    int64_t split_keys;            /* keys of one split of a decode: a multiple of 64, at most 2^30; 0: as fills the
                                      GPU best, in prefills of few tokens, too. With a fixed number, bits of a
                                      sequence's output don't depend on the batch, and prefills are not split, unless
                                      prefill_split_keys says how */
    /* All targets. 1: no run of the plan stores, and a run with current_key or current_value is refused; 0: runs may
     * store. Operators without a cache store nothing either way. What is read is checked as always, at every level;
     * what only new tokens need is not: sequences may share any slots, the last page that beams fill included, and
     * table rows; n may exceed m (cross attention; rows i < n - m of a causal sequence see no key: output 0, lse -inf);
     * start_pos is ignored; elements of cache and scale may overlap, and begin where inputs begin. The plan needs no
     * store program: KVJIT_PROGRAM_STORE is neither prepared nor compiled. Batches may be shared with plans that
     * store. */
    int32_t stores_nothing;
    /* CPU targets, when executor is NULL: how many microseconds threads of the library's own pool look for the next
     * stage or run before they sleep, 0 (sleep at once) to 1000000. -1, the default: 50, a few times what waking them
     * takes, so that spinning never costs much more than it saves (docs/threads.md). Doesn't change results. */
    int64_t spin_us;
    /* CUDA targets only. Keys of one split of a prefill: a multiple of 64, at most 2^30; 0: as split_keys says. With a
     * fixed number, bits of what is prefilled don't depend on the batch; those of decodes don't with split_keys. It
     * makes a few new tokens over many keys faster, on which few blocks would work, and slows down prefills that fill
     * the GPU: each split of a tile of rows writes float32 parts, which are merged. */
    int64_t prefill_split_keys;
} kvjit_plan_options;

KVJIT_API void kvjit_plan_options_init_sized(kvjit_plan_options *options, size_t size);
static inline void kvjit_plan_options_init(kvjit_plan_options *options) {
    kvjit_plan_options_init_sized(options, sizeof *options);
}

typedef struct kvjit_plan kvjit_plan;

/* Checks the batch, splits the work, has the needed images ready (which may compile: see kvjit_kernel_prepare). One
 * plan serves all layers of a step; it is run, and released, by one thread at a time. `options` may be NULL.
 * Memory, whatever the lengths: on CPU targets a workspace of up to 64 MiB, and beside it up to 64 MiB, 512 bytes a
 * sequence and with ALiBi 8 bytes a query head; on CUDA the latter two. A check of slots needs 64 bytes more for each
 * run of new tokens on neighbouring slots, or for each new token where store_slots says where it goes. A CUDA workspace
 * holds parts of up to 16 blocks for each that the GPU runs at once, or 64 MiB; with split_keys it grows with
 * batch_size * num_heads * max_kvlen / split_keys, with prefill_split_keys with S * num_heads * max_kvlen /
 * prefill_split_keys, S being batch_size * max_seqlen, or without max_seqlen the mirror's new tokens: each of these
 * takes 4 * head_dim + 32 bytes. Errors: KVJIT_BAD_ARGUMENT, KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE, KVJIT_BAD_INDEX, those
 * of prepare. Thread-safe. */
KVJIT_API kvjit_status kvjit_plan_create(kvjit_kernel *kernel, const kvjit_batch *batch,
                                         const kvjit_plan_options *options, kvjit_plan **plan, kvjit_error *error);
KVJIT_API void kvjit_plan_release(kvjit_plan *plan);
/* Waits until the plan's runs are done. CUDA: errors that came up meanwhile, KVJIT_CUDA_ERROR, and what a checked plan
 * found in the device's index arrays, KVJIT_BAD_INDEX; then no run since the fault has written anything. Nothing to
 * wait for on CPU targets. One thread at a time, as kvjit_run. */
KVJIT_API kvjit_status kvjit_plan_synchronize(kvjit_plan *plan, kvjit_error *error);
/* Bytes of workspace that the plan uses. Thread-safe. */
KVJIT_API size_t kvjit_plan_workspace_bytes(const kvjit_plan *plan);
/* Path, splits and bytes of the plan, for people. Thread-safe. */
KVJIT_API void kvjit_plan_describe(const kvjit_plan *plan, kvjit_sink sink, void *context);

/* ---- Run ------------------------------------------------------------------------------------------------ */

/* The tensors of one call. S = seqstarts[B], K = kvstarts[B]; query-side tensors may have more rows, which are neither
 * read nor written. The last axis is contiguous everywhere; other strides are free, from 0 on where a tensor is only
 * read, and such that no two elements overlap where it is written. Only the stride between keys and values may be
 * negative. What a run writes must not overlap any other tensor of it: a tensor that begins at the same address is
 * refused, other overlaps are not detected.
 * Where the plan's options say stores_nothing, a run takes no current_key and current_value, and cache and scale are
 * inputs alone, whose elements may overlap.
 *
 *                    KeyValueCache            MultiHeadAttention  MultiHeadCacheAttention  Merge             Relayout
 * query              -                        in (S, H, D)        in (S, H, D)             -                 -
 * current_key/value  in (S, Hkv, D), opt.     -                   in (S, Hkv, D), opt.     -                 -
 * cache              in, out                  -                   in, out                  -                 in, out
 * scale              in, out q                -                   in, out q                -                 in, out q
 * key_cache          in, out                  -                   in, out                  -                 in, out
 * value_cache        in, out                  -                   in, out                  -                 in, out
 * key_scale          in, out q                -                   in, out q                -                 in, out q
 * value_scale        in, out q                -                   in, out q                -                 in, out q
 * attn_mask          -                        in (spec)           in (spec)                -                 -
 * sinks              -                        in (spec)           in (spec)                in (spec)         -
 * key, value         out (K, Hkv*R, D), opt.  in (K, Hkv, D)      -                        -                 -
 * partial_output     -                        -                   -                        in (P, S, H, D)   -
 * partial_lse        -                        -                   -                        in (P, S, H)      -
 * attn_output        -                        out (S, H, D)       out (S, H, D)            out (S, H, D)     -
 * lse                -                        out (S, H), opt.    out (S, H), opt.         out (S, H), opt.  -
 * q: where the cache is quantised. (spec): where the spec has it.
 *
 * cache: one axis for each letter of the layout, T = max_tokens (page_size in a block_table, with N = num_blocks), D =
 *        head_dim, or head_dim / 2 bytes (KVJIT_U8) for int4; of a split axis the outer extent is D/d or T/t. scale:
 *        the same with D = head_dim / quant_group.
 * key_cache, value_cache, key_scale, value_scale: in place of cache and scale, and only there, where the layout has no
 *        axis 2: two tensors each, which may be views of one allocation. Axes as layout and value_layout have them.
 * The stride of axis 2, where that stands left of D, is free and may be negative, but is no shorter than a row. Whether
 * keys and values overlap is not checked.
 * A block_pointers cache has none of the six: cachestarts and scalestarts say where its blocks lie, each dense, with
 *        the axes of the layout (T = page_size).
 * attn_mask: (S, W) or (H, S, W), W >= K.   sinks: (H). sinks, lse, partial_lse: float32, natural log. All else: T1.
 * partial_lse: -inf and +inf say that a part had no key; its partial_output then has weight 0 (a NaN in it shows). */
typedef struct kvjit_tensors {
    uint32_t struct_size;
    kvjit_tensor query;
    kvjit_tensor current_key;
    kvjit_tensor current_value;
    kvjit_tensor cache;
    kvjit_tensor scale;
    kvjit_tensor key_cache; /* these four where the layout lacks axis 2, in place of cache and scale */
    kvjit_tensor value_cache;
    kvjit_tensor key_scale;
    kvjit_tensor value_scale;
    kvjit_tensor attn_mask;
    kvjit_tensor sinks; /* (H), float32, where the spec has sinks */
    kvjit_tensor key;
    kvjit_tensor value;
    kvjit_tensor partial_output;
    kvjit_tensor partial_lse;
    kvjit_tensor attn_output;
    kvjit_tensor lse;
} kvjit_tensors;

KVJIT_API void kvjit_tensors_init_sized(kvjit_tensors *tensors, size_t size);
static inline void kvjit_tensors_init(kvjit_tensors *tensors) {
    kvjit_tensors_init_sized(tensors, sizeof *tensors);
}

/* Runs the plan on layer `layer_idx` of the cache and returns when all is written; on CUDA, when all is enqueued on the
 * plan's stream: tensors stay valid until the stream is past it. There it may be captured into a CUDA graph. A plan has
 * one workspace, so one run or replay of it at a time: replay on the plan's stream, or wait for a replay elsewhere
 * before the next one and before kvjit_plan_synchronize.
 *   store   KeyValueCache, MultiHeadCacheAttention: current_key/value -> slots, before anything is read
 *   attend  O[i,h,:] = softmax(q[i,h] . K[:,h/G]^T * softmax_scale + bias) . V[:,h/G]    docs/semantics.md, section 3
 *   load    KeyValueCache: key, value[kvstarts[b] + t, h*R + r, :] = dequantised slot (b, t), head h
 * Floating-point numbers are rounded as the threads that work round them: to nearest even, unless a program has changed
 * that for its threads. Which floating-point exceptions a run raises is not defined, so these must be masked, as they
 * are unless a program has changed that, too. Allocates nothing, takes no lock but the default executor's, whose calls
 * take turns. On CPU targets the calling thread works too, unless its executor excludes it, and needs 1 MiB of stack. A
 * forked process lacks the default executor's threads: there a plan of the parent's is refused, unless it has one
 * thread. What threads that work have in AMX's tiles is lost, but not the tiles' configuration. Errors:
 * KVJIT_BAD_ARGUMENT, KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE. One thread at a time. */
KVJIT_API kvjit_status kvjit_run(kvjit_plan *plan, const kvjit_tensors *tensors, int64_t layer_idx, kvjit_error *error);

/* ---- Relayout: from one cache to another ---------------------------------------------------------------- */

/* Which tokens to copy from which cache to which. Either side is a batch as the step's other operators have it; copied
 * are its sequences' new tokens: in sequence b, positions m - n to m - 1, n from seqstarts, m from kvstarts, kvlens or
 * last_page_len. Sequence b of `from` goes to sequence b of `to`, token by token in order. So
 *   - a whole sequence is copied where n == m, and a step's additions to it with the step's own batch;
 *   - N blocks are copied to N others as N sequences of page_size tokens, whose rows of the tables have one entry each;
 *   - a contiguous wire buffer is a cache of mode `offset`: to it is gather, from it is scatter.
 * A batch's fields that count are batch_size, num_kv_heads (not 0: a relayout knows no groups of heads), num_layers,
 * max_tokens, num_blocks, max_seqlen, max_kvlen, the arrays of starts, lengths and rows, start_pos, and the tables; not
 * store_slots, which must be absent. All arrays are in host memory, on every target; they are read while the plan is
 * made, and needed no longer. */
typedef struct kvjit_relayout {
    uint32_t struct_size;
    const kvjit_batch *from;
    const kvjit_batch *to;
    /* A side takes part with its tokens at positions j where j % ranks == rank; with 1 and 0, the defaults, with all.
     * So the tokens of one cache are distributed to W others (from_ranks W, from_rank r to the r-th), and joined in one
     * again (to_ranks W, to_rank r from the r-th). */
    int64_t from_ranks;
    int64_t from_rank;
    int64_t to_ranks;
    int64_t to_rank;
    int64_t from_head; /* the first kv head to copy, in either cache: 0, unless heads are distributed */
    int64_t to_head;
    int64_t num_kv_heads; /* how many; 0: from's, of which `to` then has as many */
    int64_t num_layers;   /* how many a run copies; 0: from's, of which `to` then has as many */
} kvjit_relayout;

KVJIT_API void kvjit_relayout_init_sized(kvjit_relayout *relayout, size_t size);
static inline void kvjit_relayout_init(kvjit_relayout *relayout) {
    kvjit_relayout_init_sized(relayout, sizeof *relayout);
}

/* The spec of a relayout from a cache of `from` to one of `to`, each a spec of an operator with a cache. t1 is f32
 * where either has that for t1 or for its elements, or where they have both f16 and bf16 for these; else from's.
 * Errors: KVJIT_BAD_ARGUMENT; KVJIT_BAD_SPEC, also where they differ in what a relayout doesn't change: head_dim,
 * starts_type. *result is then unchanged. Thread-safe. */
KVJIT_API kvjit_status kvjit_relayout_spec_sized(const kvjit_spec *from, const kvjit_spec *to, kvjit_spec *result,
                                                 size_t size, kvjit_error *error);
static inline kvjit_status kvjit_relayout_spec(const kvjit_spec *from, const kvjit_spec *to, kvjit_spec *result,
                                               kvjit_error *error) {
    return kvjit_relayout_spec_sized(from, to, result, sizeof *result, error);
}

/* A plan of a kernel of op Relayout, which kvjit_relayout_run runs. Checks both batches as kvjit_plan_create does,
 * `to` as one whose new tokens are stored: no two in one slot. Of the options, stores_nothing, host_batch, split_keys
 * and prefill_split_keys must be unset. Memory: 24 bytes for each run of tokens that are neighbours on either side (in
 * one block, where there are blocks; 256 at most, on CUDA 32), and 16 to 32 of table entries, each layer's where tables
 * have an axis L; on CUDA they are the workspace. While the plan is made it is up to six times as much for each entry
 * of a table. Errors: those of kvjit_plan_create; KVJIT_BAD_INDEX where a sequence has other counts of tokens on either
 * side. Arguments begin with "from." and "to.". Thread-safe. */
KVJIT_API kvjit_status kvjit_relayout_plan_create(kvjit_kernel *kernel, const kvjit_relayout *relayout,
                                                  const kvjit_plan_options *options, kvjit_plan **plan,
                                                  kvjit_error *error);

/* Copies the plan's tokens: of num_layers layers, from_layer and the following ones of the cache in `from` to to_layer
 * and the following ones of the cache in `to`, both keys and values, with their scales. Of tensors that hold one layer
 * each, num_layers is 1, and one plan serves all. The tensors used are cache, scale, key_cache, value_cache, key_scale
 * and value_scale, as the layouts have them.
 * The result: where types, quant_bit, quant_group and scales' type are the same, the same bytes; else what
 * KeyValueCache would load from `from` to T1, and store from there.
 * The two caches lie apart in memory, each from its first element to its last, or are one: the same tensors, or the
 * same blocks' addresses, by layouts of the same meaning. Then no token is read in a slot in which another one is
 * written, unless heads or layers differ (slots of all layers count as one where tables have an axis L and the layout
 * hasn't); otherwise the run is refused. Everything else is as kvjit_run has it: threads, streams, graphs, allocation.
 * Errors: KVJIT_BAD_ARGUMENT, KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE, KVJIT_BAD_INDEX. */
KVJIT_API kvjit_status kvjit_relayout_run(kvjit_plan *plan, const kvjit_tensors *from, int64_t from_layer,
                                          const kvjit_tensors *to, int64_t to_layer, kvjit_error *error);

/* ---- This header's structs, for languages that don't read it -------------------------------------------- */

/* Bytes of the struct of this name, "kvjit_batch" say, as the library that is loaded knows it: what
 * kvjit_batch_init_sized takes. 0 for NULL and for names that it doesn't have. Thread-safe. */
KVJIT_API size_t kvjit_struct_size(const char *name);

/* Calls `row` once a field, for all structs of this header in turn, with the struct's name, the field's, its type, and
 * where it lies: bytes from the struct's begin, and how many. A struct's fields come in order, after the structs that
 * it holds. Types are char, int32_t, uint32_t, int64_t, uint64_t, float, double, `pointer` (to anything), a struct's
 * name; an array's is followed by its extent, "char[8]". So a binding can declare the structs from these rows, as
 * examples/decode_step.py does for Python. Texts have static storage. Thread-safe. */
KVJIT_API void kvjit_struct_fields(void (*row)(void *context, const char *struct_name, const char *name,
                                               const char *type, size_t offset, size_t size),
                                   void *context);

#ifdef __cplusplus
}
#endif

#endif
