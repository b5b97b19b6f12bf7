// Random batches, legal and not, with index arrays and tensors between guard pages: what is accepted stays inside.
#include "public_call.h"
#include "random_batch.h"

namespace kvjit::test {
namespace {

void run_if_accepted(std::string_view spec, std::uint64_t seed) {
    INFO(spec, ", seed ", seed);
    Rng rng(seed);
    const RandomBatch c(spec, rng);
    Handle<kvjit_plan> plan;
    kvjit_error error = new_error();
    if (try_plan(c, &plan, &error) != KVJIT_OK) {
        CHECK(error.argument[0] != '\0');
        return;
    }
    const CallTensors call(c, {c.seqstarts.back(), c.kvstarts.back()});
    CHECK_MESSAGE(kvjit_run(plan.get(), &call.tensors, 1, &error) == KVJIT_OK, std::string(error.message));
}

TEST_CASE("no table, however bad, leads out of bounds at the full level") {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        run_if_accepted("op=KeyValueCache,cache_mode=page_table,page_size=3,index_type=i32", seed);
        run_if_accepted("op=MultiHeadCacheAttention,cache_mode=block_table,page_size=4,layout=N2LTHD", seed);
        run_if_accepted("op=MultiHeadCacheAttention,cache_mode=token_table", seed);
        run_if_accepted("op=MultiHeadCacheAttention,cache_mode=offset", seed);
        run_if_accepted("op=MultiHeadCacheAttention,cache_mode=sequence_table,layout=NL2THD", seed);
        run_if_accepted("op=KeyValueCache,cache_mode=block_pointers,page_size=4,layout=2LTHD", seed);
    }
}

}  // namespace
}  // namespace kvjit::test
