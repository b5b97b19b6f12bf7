// The full check against a token-by-token one, on random batches between guard pages.
#include <cstdlib>

#include "batch_oracle.h"
#include "check/check_batch.h"
#include "expect.h"
#include "random_batch.h"

namespace kvjit::test {
namespace {

constexpr const char* kSpecs[] = {
    "op=KeyValueCache,cache_mode=offset",
    "op=MultiHeadCacheAttention,cache_mode=token_table",
    "op=MultiHeadCacheAttention,cache_mode=token_table,index_type=i32",
    "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=4",
    "op=KeyValueCache,cache_mode=page_table,page_size=3,index_type=i32",
    "op=MultiHeadCacheAttention,cache_mode=block_table,page_size=4,layout=N2LTHD",
    "op=MultiHeadCacheAttention,cache_mode=block_table,page_size=5,layout=N2LTHD,index_type=i32",
};

/// KVJIT_TEST_SEED=N runs the one batch of that seed.
void each_seed(std::uint64_t count, void (*body)(std::uint64_t seed)) {
    const char* only = std::getenv("KVJIT_TEST_SEED");
    if (only != nullptr) return body(std::strtoull(only, nullptr, 10));
    for (std::uint64_t seed = 1; seed <= count; ++seed) body(seed);
}

TEST_CASE("the full check accepts what is legal, token by token, and nothing else") {
    static int legal = 0;
    static int refused = 0;
    each_seed(7000, [](std::uint64_t seed) {
        INFO("KVJIT_TEST_SEED=", seed, " test_error_api --test-case='the full check accepts*'");
        Rng rng(seed);
        RandomBatch c(kSpecs[seed % std::size(kSpecs)], rng);
        const bool stores = rng.chance(0.5);
        if (!stores) c.batch.start_pos = nullptr;
        const auto result = rt::check_batch(c.spec, c.batch, {KVJIT_CHECK_FULL, stores});
        INFO((result ? std::string("accepted") : result.error().message));
        const bool want = is_legal(c, stores);
        REQUIRE(result.has_value() == want);
        ++(want ? legal : refused);
    });
    if (std::getenv("KVJIT_TEST_SEED") != nullptr) return;
    CHECK(legal > 1000);
    CHECK(refused > 1000);
}

}  // namespace
}  // namespace kvjit::test
