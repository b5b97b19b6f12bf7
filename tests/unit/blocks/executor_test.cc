// Who moves: blocks large enough for several threads, on the library's pool and on executors of the caller's.
#include <doctest/doctest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "operations.h"
#include "random_cache.h"

namespace kvjit::test {
namespace {

/// Blocks of 192 KiB of codes, in layouts with long runs and with short ones.
constexpr const char* kLarge[] = {
    "op=KeyValueCache,head_dim=64,t1=f32,cache_mode=block_table,page_size=48,layout=N2LTHD",
    "op=KeyValueCache,head_dim=64,t1=f32,cache_mode=block_table,page_size=48,layout=LNHT2D",
    "op=KeyValueCache,head_dim=64,t1=f32,quant_bit=8,cache_mode=block_pointers,page_size=48,layout=2LTHD",
    "op=KeyValueCache,head_dim=64,t1=f32,quant_bit=8,cache_mode=block_table,page_size=48,layout=2NLHTD"};

/// Runs tasks backwards, on a thread each, and counts them.
struct Backwards {
    std::int64_t calls = 0, tasks = 0;

    kvjit_executor executor(std::int32_t concurrency) { return {sizeof(kvjit_executor), concurrency, this, run}; }
    static void run(void* context, void (*task)(void*, std::int64_t), void* argument, std::int64_t count) {
        auto& self = *static_cast<Backwards*>(context);
        ++self.calls;
        self.tasks += count;
        std::vector<std::jthread> threads;
        for (std::int64_t i = count; i-- > 0;) threads.emplace_back([=] { task(argument, i); });
    }
};

void check_large(const char* first_text, const char* second_text, const How& how, std::uint64_t seed) {
    INFO("seed ", seed, ": ", first_text, " and ", second_text);
    Rng random(seed);
    const ModelSize size{.heads = 2, .layers = 4, .blocks = 4};
    CacheModel first(parsed(first_text), size, random), second(parsed(second_text), size, random);
    check_operations(first, second, how, random);
}

TEST_CASE("large blocks are moved by the pool as the oracle does it") {
    std::uint64_t seed = 1;
    for (const std::uint32_t threads : {0U, 1U, 3U}) {
        How how;
        how.host.num_threads = threads;
        check_large(kLarge[0], kLarge[1], how, ++seed);
        check_large(kLarge[1], kLarge[0], how, ++seed);
        check_large(kLarge[2], kLarge[3], how, ++seed);
    }
}

TEST_CASE("large blocks are moved by an executor, its tasks in any order") {
    std::uint64_t seed = 100;
    for (const std::int32_t concurrency : {1, 2, 7}) {
        Backwards backwards;
        const kvjit_executor executor = backwards.executor(concurrency);
        How how;
        how.host.executor = &executor;
        check_large(kLarge[0], kLarge[1], how, ++seed);
        check_large(kLarge[3], kLarge[2], how, ++seed);
        CHECK(backwards.calls >= 4);
        CHECK(backwards.tasks > backwards.calls);
        CHECK(backwards.tasks <= 4 * concurrency * backwards.calls);
    }
}

TEST_CASE("little is moved without waking anybody") {
    Backwards backwards;
    const kvjit_executor executor = backwards.executor(4);
    How how;
    how.host.executor = &executor;
    Rng random(7);
    const kvjit_spec spec = parsed("op=KeyValueCache,head_dim=8,cache_mode=block_table,page_size=4,layout=N2THD");
    CacheModel first(spec, {}, random), second(spec, {}, random);
    check_operations(first, second, how, random);
    CHECK(backwards.calls == 0);
}

}  // namespace
}  // namespace kvjit::test
