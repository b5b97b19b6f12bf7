// What a KsanaLLM pool and its conversions refuse: with argument, value and limit, and nothing written.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kvjit/interop/ksana.h"

namespace kvjit::interop::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
alignas(64) char memory[1 << 16];

KernelSpec spec_of(const std::string& fields) {
    return *KernelSpec::parse("op=KeyValueCache,head_dim=16,t1=f32,cache_mode=page_table,page_size=4," + fields);
}

template <class T>
void expect_refused(const Result<T>& result, kvjit_status status, const std::string& argument, std::int64_t value,
                    std::int64_t limit, std::int64_t sequence = -1) {
    REQUIRE(!result.has_value());
    const Error& error = result.error();
    INFO(error.message());
    CHECK(error.status() == status);
    CHECK(error.argument() == argument);
    CHECK(error.value() == value);
    CHECK(error.limit() == limit);
    CHECK(error.sequence() == sequence);
    const std::string message = error.message();
    CHECK(message.find(argument) != std::string::npos);
    CHECK((value == 0 || message.find(std::to_string(value)) != std::string::npos));
}

constexpr std::int64_t kBlockBytes = 2 * 3 * 4 * 2 * 64;  // L 3, 4 tokens, 2 heads of 16 floats

Result<KsanaPool> wrap(KsanaRegion region, KsanaExtents extents = {3, 2, 16}) {
    return KsanaPool::wrap(spec_of(""), extents, region);
}

TEST_CASE("regions that are no pool") {
    CHECK(wrap({memory, 5 * kBlockBytes})->num_blocks() == 5);
    expect_refused(wrap({nullptr, kBlockBytes}), KVJIT_BAD_ARGUMENT, "codes", 0, 0);
    expect_refused(wrap({memory, kBlockBytes - 1}), KVJIT_BAD_ARGUMENT, "codes", kBlockBytes - 1, kBlockBytes);
    expect_refused(wrap({memory, 5 * kBlockBytes + 64}), KVJIT_BAD_ARGUMENT, "codes", 5 * kBlockBytes + 64,
                   kBlockBytes);
    expect_refused(wrap({memory, 0}), KVJIT_BAD_ARGUMENT, "codes", 0, kBlockBytes);
    expect_refused(wrap({memory, -kBlockBytes}), KVJIT_BAD_ARGUMENT, "codes", -kBlockBytes, kBlockBytes);
    expect_refused(wrap({memory + 8, kBlockBytes}), KVJIT_BAD_ARGUMENT, "codes", 8, 16);
    expect_refused(KsanaPool::wrap(spec_of(""), {3, 2, 16}, {memory, kBlockBytes}, {memory, 64}), KVJIT_BAD_ARGUMENT,
                   "scales", 0, 0);
}

TEST_CASE("extents that are none") {
    expect_refused(wrap({memory, kBlockBytes}, {0, 2, 16}), KVJIT_BAD_ARGUMENT, "num_layers", 0, 1);
    expect_refused(wrap({memory, kBlockBytes}, {3, -2, 16}), KVJIT_BAD_ARGUMENT, "num_kv_heads", -2, 1);
    expect_refused(wrap({memory, kBlockBytes}, {3, 2, 0}), KVJIT_BAD_ARGUMENT, "alignment", 0, 1);
    expect_refused(wrap({memory, kBlockBytes}, {3, 2, 24}), KVJIT_BAD_ARGUMENT, "alignment", 24, 0);
    expect_refused(wrap({memory, kBlockBytes}, {3, 2, 2048}), KVJIT_BAD_ARGUMENT, "alignment", 2048, kBlockBytes);
    expect_refused(wrap({memory, kBlockBytes}, {kMost, 2, 16}), KVJIT_BAD_ARGUMENT, "num_layers", kMost, 0);
    expect_refused(KsanaPool::allocate(spec_of(""), {3, 2, 16}, 0), KVJIT_BAD_ARGUMENT, "num_blocks", 0, 1);
    expect_refused(KsanaPool::allocate(spec_of(""), {3, 2, 16}, kMost), KVJIT_BAD_ARGUMENT, "num_blocks", kMost,
                   kBlockBytes);
    expect_refused(KsanaPool::allocate(spec_of(""), {3, 2, 16}, kMost / kBlockBytes), KVJIT_OUT_OF_MEMORY, "num_blocks",
                   kMost / kBlockBytes, 0);
    KernelSpec dense = spec_of("");
    dense.op = KVJIT_OP_MULTI_HEAD_ATTENTION;
    expect_refused(KsanaPool::wrap(dense, {3, 2, 16}, {memory, kBlockBytes}), KVJIT_BAD_SPEC, "op",
                   KVJIT_OP_MULTI_HEAD_ATTENTION, 0);
    KernelSpec odd = spec_of("");
    odd.head_dim = 12;
    CHECK(std::string(KsanaPool::wrap(odd, {3, 2, 16}, {memory, kBlockBytes}).error().argument()) == "head_dim");
}

TEST_CASE("scales of another pool, and halves that don't begin where they should") {
    const KernelSpec quantised = spec_of("quant_bit=8,quant_group=16,t3=f16");
    const std::int64_t codes = 2 * 3 * 4 * 2 * 16, scales = 2 * 3 * 4 * 2 * 2;
    const auto pool = [&](KsanaRegion of_scales, std::int64_t alignment) {
        return KsanaPool::wrap(quantised, {3, 2, alignment}, {memory, 4 * codes}, of_scales);
    };
    char* behind = memory + 4 * codes;
    CHECK(pool({behind, 4 * scales}, 16).has_value());
    expect_refused(pool({}, 16), KVJIT_BAD_ARGUMENT, "scales", 0, 0);
    expect_refused(pool({behind, 3 * scales}, 16), KVJIT_BAD_ARGUMENT, "scales", 3, 4);
    expect_refused(pool({behind, 4 * scales + 16}, 16), KVJIT_BAD_ARGUMENT, "scales", 4 * scales + 16, scales);
    expect_refused(pool({behind + 2, 4 * scales}, 16), KVJIT_BAD_ARGUMENT, "scales", 2, 16);
    // 96 bytes of scales are multiples of 32; their halves are not.
    const Result<KsanaPool> odd = pool({behind, 4 * scales}, 32);
    REQUIRE(odd.has_value());
    Tensors tensors;
    expect_refused(odd->spec(KsanaView::kAtb), KVJIT_BAD_ARGUMENT, "alignment", 32, scales / 2);
    expect_refused(odd->set_tensors(KsanaView::kAtb, tensors), KVJIT_BAD_ARGUMENT, "alignment", 32, scales / 2);
    expect_refused(odd->spec(KsanaView::kAtbSlots), KVJIT_BAD_ARGUMENT, "alignment", 32, scales / 2);
    expect_refused(odd->atb_caches(), KVJIT_BAD_ARGUMENT, "alignment", 32, scales / 2);
    CHECK(odd->spec(KsanaView::kPool).has_value());
    CHECK(odd->set_tensors(KsanaView::kPool, tensors).has_value());
}

TEST_CASE("blocks that are not free, not taken or not there") {
    KsanaPool pool = *wrap({memory, 5 * kBlockBytes});
    std::vector<std::int64_t> blocks(6, -7);
    expect_refused(pool.take(blocks.data(), 6), KVJIT_BAD_ARGUMENT, "count", 6, 5);
    expect_refused(pool.take(blocks.data(), -1), KVJIT_BAD_ARGUMENT, "count", -1, 5);
    expect_refused(pool.take(nullptr, 1), KVJIT_BAD_ARGUMENT, "count", 1, 5);
    CHECK(blocks == std::vector<std::int64_t>(6, -7));
    REQUIRE(pool.take(blocks.data(), 3).has_value());
    for (const std::vector<std::int64_t>& wrong :
         {std::vector<std::int64_t>{0, 1, 1}, {0, 4}, {2, 5}, {1, -1}, {0, kMost}}) {
        expect_refused(pool.release(wrong.data(), static_cast<std::int64_t>(wrong.size())), KVJIT_BAD_INDEX, "blocks",
                       wrong.back(), 5);
        CHECK(pool.num_free() == 2);
    }
    CHECK(pool.release(blocks.data(), 3).has_value());
    expect_refused(pool.release(0), KVJIT_BAD_INDEX, "blocks", 0, 5);
    CHECK(pool.num_free() == 5);
    KsanaPool other = std::move(pool);
    CHECK(other.num_free() == 5);
    CHECK(pool.num_free() == 0);
    expect_refused(pool.take(blocks.data(), 1), KVJIT_BAD_ARGUMENT, "count", 1, 0);
}

TEST_CASE("tables with an entry that the pool doesn't have change nothing") {
    const KsanaPool pool = *wrap({memory, 5 * kBlockBytes});
    const auto base = reinterpret_cast<std::intptr_t>(memory);
    std::vector<std::int64_t> from{0, 4, -1, 3, 2, 1}, to(6, 99);
    const KsanaTable<std::int64_t> table(from.data(), 2, 3), made(to.data(), 2, 3);
    for (const std::int64_t wrong : {std::int64_t{5}, std::int64_t{-2}, kMost, -kMost}) {
        from[4] = wrong;
        expect_refused(to_atb(pool, table, 1, made), KVJIT_BAD_INDEX, "blocks", wrong, 5, 1);
        expect_refused(to_pointers(pool, table, made), KVJIT_BAD_INDEX, "blocks", wrong, 5, 1);
    }
    CHECK(std::string(to_atb(pool, table, 1, made).error().message()).find("blocks[1, 1] is ") == 0);
    // Of layer 1 of 3 are 1, 7, 13, ...; 4 is where a block's values of that layer begin, seen from kcache.
    for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{4}, std::int64_t{31}, std::int64_t{-5}}) {
        from = {1, 7, -1, 13, wrong, 25};
        expect_refused(from_atb(pool, table, 1, made), KVJIT_BAD_INDEX, "atb", wrong, 30, 1);
    }
    for (const std::int64_t wrong : {base - kBlockBytes, base + 5 * kBlockBytes, base + 8, std::intptr_t{0}, -kMost}) {
        from = {wrong, base, -1, base, base, base};
        expect_refused(from_pointers(pool, table, made), KVJIT_BAD_INDEX, "addresses", wrong, kBlockBytes, 0);
    }
    CHECK(to == std::vector<std::int64_t>(6, 99));
}

TEST_CASE("layers and tables that don't suit") {
    const KsanaPool pool = *wrap({memory, 5 * kBlockBytes});
    std::vector<std::int64_t> ids(6);
    const KsanaTable<std::int64_t> table(ids.data(), 2, 3);
    for (const std::int64_t layer : {std::int64_t{-1}, std::int64_t{3}}) {
        expect_refused(to_atb(pool, table, layer, table), KVJIT_BAD_ARGUMENT, "layer", layer, 3);
        expect_refused(from_atb(pool, table, layer, table), KVJIT_BAD_ARGUMENT, "layer", layer, 3);
    }
    const KsanaTable<std::int64_t> small(ids.data(), 1, 3), narrow(ids.data(), 2, 3, 2), null(nullptr, 2, 3);
    expect_refused(to_atb(pool, table, 0, small), KVJIT_BAD_SHAPE, "to", 1, 2);
    CHECK(!to_atb(pool, table, 0, narrow).has_value());
    CHECK(!to_atb(pool, table, 0, null).has_value());
    CHECK(!to_atb(pool, null, 0, table).has_value());
    CHECK(!to_atb(pool, narrow, 0, table).has_value());
}

/// Refused of a plan of one new token, whose keys are no others.
void expect_refused(const KsanaPool& pool, KsanaView view, const Batch& batch, std::int64_t value, std::int64_t limit,
                    const std::string& layer) {
    const Result<Plan> plan = Engine::create()->kernel(*pool.spec(view))->plan(batch);
    expect_refused(plan, KVJIT_BAD_INDEX, "cachestarts", value, limit, 0);
    CHECK(std::string(plan.error().message()).find(layer) != std::string::npos);
}

TEST_CASE("KsanaLLM's arrays with ids and slots past the pool: the layer is told") {
    const KsanaPool pool = *KsanaPool::wrap(spec_of(kKsanaSpecFields), {3, 2, 16}, {memory, 5 * kBlockBytes});
    const std::int32_t seqstarts[] = {0, 1}, lens[] = {1}, ids[] = {0, 27, 2}, slots[] = {0, 4, 108};
    KsanaArrays arrays;
    arrays.batch_size = arrays.num_tokens = arrays.max_num_blocks_per_query = 1;
    arrays.seqstarts = seqstarts;
    arrays.seq_len_host = lens;
    arrays.layers_block_table = ids;
    expect_refused(pool, KsanaView::kAtb, arrays.batch(pool), 27, 27, "(layer 1)");  // keys without values
    arrays.layers_slot_mapping = slots;
    expect_refused(pool, KsanaView::kAtbSlots, arrays.prompts(pool), 108, 108, "(layer 2)");
}

TEST_CASE("ids and addresses that the other table's type doesn't hold") {
    const KsanaPool pool = *wrap({memory, 5 * kBlockBytes});
    std::vector<std::int64_t> blocks{4};
    std::int32_t narrow = 7;
    std::int8_t tiny = 7;
    const KsanaTable<std::int64_t> table(blocks.data(), 1, 1);
    CHECK(to_atb(pool, table, 2, KsanaTable<std::int32_t>(&narrow, 1, 1)).has_value());
    CHECK(narrow == 4 * 6 + 2);
    const KsanaPool many = *wrap({memory, 40 * kBlockBytes});  // none of which is written
    blocks = {39};
    expect_refused(to_atb(many, table, 2, KsanaTable<std::int8_t>(&tiny, 1, 1)), KVJIT_BAD_INDEX, "blocks", 39, 127, 0);
    CHECK(tiny == 7);
}

}  // namespace
}  // namespace kvjit::interop::test
