/* kvjit: blocks of KV caches as objects, which are moved, exchanged and zeroed whatever they hold.
 *
 *   kvjit_blocks_copy    copy on write of a shared prefix's last block; out to another memory, and back
 *   kvjit_blocks_move    defragmentation, within one cache
 *   kvjit_blocks_swap    two blocks change places
 *   kvjit_blocks_zero    blocks for the next owner
 *
 * None of them needs an engine, a kernel or a compiler. Conventions are those of kvjit.h. docs/semantics.md, section 5,
 * "Blocks as objects".
 */
#ifndef KVJIT_BLOCKS_H
#define KVJIT_BLOCKS_H

#include "kvjit/kvjit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kvjit_memory {
    KVJIT_MEMORY_HOST = 0, /* the CPU reads and writes it */
    KVJIT_MEMORY_CUDA = 1  /* of the GPU that the options name, or managed memory: the driver copies */
} kvjit_memory;

/* A cache whose blocks are handled as bytes. Read during the calls only.
 *
 * A block is what an entry of the cache's table stands for, in all layers that the tensors have, keys and values, all
 * heads, codes and scales:
 *   block_table       page_size tokens: an index on axis N
 *   sequence_table    max_tokens tokens: an index on axis N
 *   page_table        page_size tokens from this token on: an index on axis T
 *   offset, token_table    one token: an index on axis T
 *   block_pointers    page_size tokens at this address, dense, a multiple of an element's bytes
 * In each function ids are (count), int64, in host memory, and read during the call. Of a quantised block_pointers
 * cache they are (2, count): the addresses of the blocks of codes, then those of the blocks of scales. */
typedef struct kvjit_blocks {
    uint32_t struct_size;
    int32_t memory;         /* kvjit_memory: where the tensors, or the blocks at addresses, lie */
    const kvjit_spec *spec; /* of an operator with a cache. Any layout, also one that attention refuses. Not yet: values
                               of another head_dim */
    const kvjit_batch *batch;     /* num_kv_heads (0: num_heads / group), num_layers (1 where the layout has no L),
                                     max_tokens and num_blocks; all else is ignored */
    const kvjit_tensors *tensors; /* the cache's, as kvjit_run takes them; all else is ignored. May be NULL for
                                     block_pointers */
} kvjit_blocks;

/* Sets the defaults: host memory, NULL pointers. Thread-safe. */
KVJIT_API void kvjit_blocks_init_sized(kvjit_blocks *blocks, size_t size);
static inline void kvjit_blocks_init(kvjit_blocks *blocks) {
    kvjit_blocks_init_sized(blocks, sizeof *blocks);
}

typedef struct kvjit_blocks_options {
    uint32_t struct_size;
    /* Where both caches are host memory. Little is moved on the calling thread alone. */
    uint32_t num_threads;           /* as kvjit_plan_options has it */
    const kvjit_executor *executor; /* as kvjit_plan_options has it */
    /* Where one of them is CUDA memory: */
    void *stream;   /* CUstream or cudaStream_t that everything goes to; NULL: the default stream */
    int64_t device; /* ordinal of the GPU; default 0 */
    /* Where both caches are host memory: */
    int64_t spin_us; /* as kvjit_plan_options has it; default -1 */
} kvjit_blocks_options;

KVJIT_API void kvjit_blocks_options_init_sized(kvjit_blocks_options *options, size_t size);
static inline void kvjit_blocks_options_init(kvjit_blocks_options *options) {
    kvjit_blocks_options_init_sized(options, sizeof *options);
}

/* Common to all four. `options` may be NULL, and so may ids where count is 0.
 *
 * Checked before a byte is written: all of spec and tensors that kvjit_run would check, and the ids. An id that leads
 * out of the cache, a null or misaligned address, a block that is written and overlaps another one of the call:
 * KVJIT_BAD_INDEX with "to_ids[3]", its value and the limit. Caches of two structs are one and the same if their
 * tensors have the same addresses and strides, or if both lie at addresses. Tensors of different caches must not
 * overlap: those that begin at the same address are refused, other overlaps are not detected.
 *
 * CUDA: returns when all is enqueued on the stream; memory stays valid until the stream is past it. Copies between host
 * and GPU overlap with other work only if the host memory is page-locked: for other memory the driver waits. Work goes
 * to the thread's current context if it is the GPU's, else to the GPU's primary one. Moves in cycles, and swaps,
 * allocate memory for a block in the stream's order (cuMemAllocAsync). What the driver refuses once some calls have
 * been enqueued is KVJIT_CUDA_ERROR, and the blocks that are written then hold anything.
 *
 * Errors: KVJIT_BAD_SPEC, KVJIT_BAD_ARGUMENT, KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE, KVJIT_BAD_INDEX, KVJIT_CUDA_ERROR,
 * KVJIT_OUT_OF_MEMORY. Arguments begin with their struct's name: "to.tensors.cache.strides[1]". Thread-safe, if the
 * calls' blocks don't overlap. */

/* Block to_ids[i] of `to` becomes what block from_ids[i] of `from` is. The two may be one cache, whose blocks are then
 * sources or destinations, not both. Else they are of one format, whatever their layouts, strides, modes and memories:
 * types, quantisation, head_dim, heads, layers and tokens of a block are the same, and pieces of a split axis fit into
 * those of the other. Blocks of equal layouts are moved in the longest runs that both have. A source may have several
 * destinations. */
KVJIT_API kvjit_status kvjit_blocks_copy(const kvjit_blocks *from, const kvjit_blocks *to, const int64_t *from_ids,
                                         const int64_t *to_ids, int64_t count, const kvjit_blocks_options *options,
                                         kvjit_error *error);

/* As kvjit_blocks_copy within one cache, and as if all at once: block to_ids[i] becomes what block from_ids[i] was
 * before the call. So chains and cycles are fine, also to_ids[i] == from_ids[i]. */
KVJIT_API kvjit_status kvjit_blocks_move(const kvjit_blocks *blocks, const int64_t *from_ids, const int64_t *to_ids,
                                         int64_t count, const kvjit_blocks_options *options, kvjit_error *error);

/* Block a_ids[i] of `a` and block b_ids[i] of `b` change places. The two may be one cache; else they are of one format,
 * as for kvjit_blocks_copy. No block occurs twice. */
KVJIT_API kvjit_status kvjit_blocks_swap(const kvjit_blocks *a, const kvjit_blocks *b, const int64_t *a_ids,
                                         const int64_t *b_ids, int64_t count, const kvjit_blocks_options *options,
                                         kvjit_error *error);

/* All bytes of the blocks become 0, those of codes and those of scales. */
KVJIT_API kvjit_status kvjit_blocks_zero(const kvjit_blocks *blocks, const int64_t *ids, int64_t count,
                                         const kvjit_blocks_options *options, kvjit_error *error);

#ifdef __cplusplus
}
#endif

#endif
