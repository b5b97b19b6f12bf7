/* Stands for libpthreadpool.a, which Debian has not: the three functions that kvjit calls, for one thread. */
#include <pthreadpool.h>

struct pthreadpool {
    size_t threads;
};

pthreadpool_t pthreadpool_create(size_t threads) {
    static struct pthreadpool pool;
    pool.threads = threads;
    return &pool;
}

size_t pthreadpool_get_threads_count(pthreadpool_t pool) {
    return pool->threads;
}

void pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task, void* context, size_t count,
                                uint32_t flags) {
    (void)pool, (void)flags;
    for (size_t i = 0; i < count; ++i) task(context, i);
}
