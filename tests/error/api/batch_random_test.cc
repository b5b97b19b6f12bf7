// The full check, the host's and the device's, against a token-by-token one, on random batches between guard pages.
#include <algorithm>
#include <cstdlib>

#include "batch_oracle.h"
#include "check/check_batch.h"
#include "device_run.h"
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
    "op=MultiHeadCacheAttention,cache_mode=token_table,starts_type=i32",
    "op=KeyValueCache,cache_mode=page_table,page_size=4,starts_type=i32,index_type=i32",
    "op=MultiHeadCacheAttention,cache_mode=block_pointers,page_size=4,layout=2LTHD",
    "op=KeyValueCache,cache_mode=block_pointers,page_size=3,layout=L2HTD,quant_bit=8",
    "op=MultiHeadCacheAttention,cache_mode=sequence_table,layout=NL2THD",
    "op=KeyValueCache,cache_mode=sequence_table,layout=LNHTD,index_type=i32",
};

/// Blocks at addresses begin where a device wants them, on the host, too.
rt::BatchUse full(bool stores) {
    return {KVJIT_CHECK_FULL, stores, kBlockAlignment};
}

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
        if (!stores || rng.chance(0.2)) c.leave_out_start_pos();
        const auto result = rt::check_batch(c.spec, c.batch, full(stores));
        INFO((result ? std::string("accepted") : result.error().message));
        const bool want = is_legal(c, stores);
        REQUIRE(result.has_value() == want);
        ++(want ? legal : refused);
    });
    if (std::getenv("KVJIT_TEST_SEED") != nullptr) return;
    CHECK(legal > 1000);
    CHECK(refused > 1000);
}

/// It names one of these: where there is one, nothing else.
void expect_one_of(const std::vector<BatchFault>& faults, const gen::Result<void>& result) {
    INFO((result ? std::string("accepted") : result.error().message));
    REQUIRE(result.has_value() == faults.empty());
    if (result) return;
    const gen::Error& error = result.error();
    const BatchFault named{error.argument, error.value, error.limit, error.sequence};
    REQUIRE(std::ranges::find(faults, named) != faults.end());
}

TEST_CASE("host and device give one answer: a batch's one fault, or one of its faults") {
    static int single = 0;
    static int spoilt = 0;
    each_seed(7000, [](std::uint64_t seed) {
        INFO("KVJIT_TEST_SEED=", seed, " test_error_api --test-case='host and device*'");
        Rng rng(seed);
        RandomBatch c(kSpecs[seed % std::size(kSpecs)], rng);
        const bool stores = rng.chance(0.7);
        if (!stores) c.batch.start_pos = nullptr;
        const std::vector<BatchFault> faults = faults_of(c, stores);
        REQUIRE(faults.empty() == is_legal(c, stores));
        expect_one_of(faults, rt::check_batch(c.spec, c.batch, full(stores)));
        const bool runs = !faults.empty() || seed % 8 == 0;  // legal batches run all of a call's kernels
        if (runs) expect_one_of(faults, run_on_device(c, full(stores)));
        single += faults.size() == 1;
        spoilt += !faults.empty();
    });
    if (std::getenv("KVJIT_TEST_SEED") != nullptr) return;
    CHECK(single > 900);
    CHECK(spoilt > 2000);
}

}  // namespace
}  // namespace kvjit::test
