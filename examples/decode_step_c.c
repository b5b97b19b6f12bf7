/* The step of quickstart.cc in C11: 8 query heads over 2 kv heads of 128, one sequence of 300 tokens, int8 pages.
 * Every call fills in the same error; `goto done` releases what there is, and releasing NULL is legal. */
#include <stdio.h>
#include <stdlib.h>

#include "kvjit/kvjit.h"

enum { HEADS = 8, KV_HEADS = 2, DIM = 128, TOKENS = 512, GROUP = 8 };

static const char *const SPEC =
    "op=MultiHeadCacheAttention head_dim=128 group=4 t1=f32 quant_bit=8 cache_mode=page_table layout=L2HTD";

static kvjit_tensor tensor3(float *data, int64_t heads) {
    const int64_t shape[] = {1, heads, DIM};
    return kvjit_tensor_contiguous(data, KVJIT_F32, 3, shape);
}

/* Axes (L, key|value, head, token, D): one layer. */
static kvjit_tensor cache_tensor(void *data, kvjit_dtype dtype, int64_t dim) {
    const int64_t shape[] = {1, 2, KV_HEADS, TOKENS, dim};
    return kvjit_tensor_contiguous(data, dtype, 5, shape);
}

static void fill(float *data, int count, float value) {
    for (int i = 0; i < count; ++i) data[i] = value;
}

static kvjit_status run_step(kvjit_plan *plan, int8_t *cache, float *scale, kvjit_error *error) {
    static float query[HEADS * DIM], key[KV_HEADS * DIM], value[KV_HEADS * DIM], output[HEADS * DIM];
    fill(query, HEADS * DIM, 0.1f);
    fill(key, KV_HEADS * DIM, 0.2f);
    fill(value, KV_HEADS * DIM, 0.3f);
    kvjit_tensors tensors;
    kvjit_tensors_init(&tensors);
    tensors.query = tensor3(query, HEADS);
    tensors.current_key = tensor3(key, KV_HEADS);
    tensors.current_value = tensor3(value, KV_HEADS);
    tensors.cache = cache_tensor(cache, KVJIT_I8, DIM);
    tensors.scale = cache_tensor(scale, KVJIT_F32, DIM / GROUP);
    tensors.attn_output = tensor3(output, HEADS);
    const kvjit_status status = kvjit_run(plan, &tensors, 0, error);
    if (status == KVJIT_OK) printf("attn_output[0, 0, 0] = %g\n", output[0]);
    return status;
}

/* One sequence, its 300th token new. The plan was made for what the arrays hold and reads them again in every run, so
 * they live as long as it does, unchanged. */
static kvjit_status plan_step(kvjit_kernel *kernel, kvjit_plan **plan, kvjit_error *error) {
    static const int64_t pages[] = {384, 0, 128}, seqstarts[] = {0, 1}, kvstarts[] = {0, 300}, start_pos[] = {299};
    const int64_t table_shape[] = {1, 3};
    kvjit_batch batch;
    kvjit_batch_init(&batch);
    batch.batch_size = 1;
    batch.num_heads = HEADS;
    batch.num_kv_heads = KV_HEADS;
    batch.max_tokens = TOKENS;
    batch.seqstarts = seqstarts;
    batch.kvstarts = kvstarts;
    batch.start_pos = start_pos;
    batch.cachestarts = kvjit_tensor_contiguous((void *)pages, KVJIT_I64, 2, table_shape);
    return kvjit_plan_create(kernel, &batch, NULL, plan, error);
}

int main(void) {
    kvjit_engine *engine = NULL;
    kvjit_kernel *kernel = NULL;
    kvjit_plan *plan = NULL;
    kvjit_spec spec;
    kvjit_error error;
    kvjit_spec_init(&spec);
    kvjit_error_init(&error);
    int8_t *cache = calloc(2 * KV_HEADS * TOKENS * DIM, sizeof *cache);
    float *scale = calloc(2 * KV_HEADS * TOKENS * DIM / GROUP, sizeof *scale);
    int result = 1;

    if (cache == NULL || scale == NULL) goto done;
    if (kvjit_spec_parse(SPEC, &spec, &error) != KVJIT_OK) goto done;
    if (kvjit_engine_create(NULL, &engine, &error) != KVJIT_OK) goto done;
    if (kvjit_engine_kernel(engine, &spec, NULL, &kernel, &error) != KVJIT_OK) goto done;
    if (plan_step(kernel, &plan, &error) != KVJIT_OK) goto done;
    if (run_step(plan, cache, scale, &error) == KVJIT_OK) result = 0;

done:
    if (result != 0) fprintf(stderr, "%s\n", error.message);
    kvjit_plan_release(plan);
    kvjit_kernel_release(kernel);
    kvjit_engine_release(engine);
    free(scale);
    free(cache);
    return result;
}
