// Random batches, legal and not, with index arrays and tensors between guard pages: what is accepted stays inside.
#include <cstring>

#include "public_call.h"
#include "random_batch.h"

namespace kvjit::test {
namespace {

/// float32 tensors that end at a page which can't be touched.
class GuardedTensors {
public:
    kvjit_tensor make(std::vector<std::int64_t> shape) {
        std::int64_t elements = 1;
        for (const std::int64_t extent : shape) elements *= extent;
        GuardedBuffer& buffer =
            buffers_.emplace_back(static_cast<std::size_t>(elements) * sizeof(float), Guard::kAfter);
        std::memset(buffer.data(), 0, buffer.size());
        return kvjit_tensor_contiguous(buffer.data(), KVJIT_F32, static_cast<std::int32_t>(shape.size()), shape.data());
    }

private:
    std::deque<GuardedBuffer> buffers_;
};

/// Blocks at addresses are no tensor.
kvjit_tensor cache_of(const BatchCase& c, GuardedTensors& memory) {
    switch (c.spec.cache_mode) {
        case KVJIT_BLOCK_POINTERS:
            return {};
        case KVJIT_BLOCK_TABLE:
            return memory.make({c.batch.num_blocks, 2, 2, c.spec.page_size, 2, 16});
        case KVJIT_SEQUENCE_TABLE:
            return memory.make({c.batch.num_blocks, 2, 2, c.batch.max_tokens, 2, 16});
        default:
            return memory.make({c.batch.max_tokens, 2, 2, 2, 16});
    }
}

kvjit_tensors tensors_of(const BatchCase& c, GuardedTensors& memory) {
    const std::int64_t s = c.seqstarts.back();
    const std::int64_t k = c.kvstarts.back();
    kvjit_tensors tensors;
    kvjit_tensors_init(&tensors);
    tensors.current_key = memory.make({s, 2, 16});
    tensors.current_value = memory.make({s, 2, 16});
    tensors.cache = cache_of(c, memory);
    if (c.spec.op == KVJIT_OP_KEY_VALUE_CACHE) {
        tensors.key = memory.make({k, 2, 16});
        tensors.value = memory.make({k, 2, 16});
    } else {
        tensors.query = memory.make({s, 4, 16});
        tensors.attn_output = memory.make({s, 4, 16});
        tensors.lse = memory.make({s, 4});
    }
    return tensors;
}

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
    GuardedTensors memory;
    const kvjit_tensors tensors = tensors_of(c, memory);
    CHECK_MESSAGE(kvjit_run(plan.get(), &tensors, 1, &error) == KVJIT_OK, std::string(error.message));
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
