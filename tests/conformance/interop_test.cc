// Engines' index arrays through kvjit/interop: batches made of them give what the oracle says.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "kvjit/interop/flashinfer.h"
#include "kvjit/interop/ksana.h"
#include "kvjit/interop/sglang.h"
#include "kvjit/interop/vllm.h"

namespace kvjit::test {
namespace {

struct Longest {
    std::int64_t tokens = 0, keys = 0;
};

Longest longest_of(const Problem& problem) {
    Longest longest;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        longest.tokens = std::max(longest.tokens, problem.new_tokens(b));
        longest.keys = std::max(longest.keys, problem.kv_tokens(b));
    }
    return longest;
}

std::vector<std::int64_t> lengths_of(const Problem& problem) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) lengths.push_back(problem.kv_tokens(b));
    return lengths;
}

Batch vllm_batch(const Call& call) {
    interop::vllm::Arrays arrays;
    arrays.num_reqs = call.problem.batch_size();
    arrays.num_tokens = call.problem.seqstarts.back();
    arrays.query_start_loc = call.seqstarts.data<std::int32_t>();
    arrays.seq_lens = call.kvlens.data<std::int32_t>();
    arrays.block_table = call.cachestarts.data<std::int32_t>();
    arrays.max_blocks = call.problem.table_columns;
    arrays.block_table_stride = call.cachestarts.strided().strides[0];
    arrays.num_blocks = call.num_blocks;
    arrays.max_query_len = longest_of(call.problem).tokens;
    arrays.max_seq_len = longest_of(call.problem).keys;
    return arrays.batch(call.problem.num_heads);
}

/// The same, and new tokens where slot_mapping says.
Batch vllm_slots_batch(const Call& call, const Placed& slot_mapping) {
    Batch batch = vllm_batch(call);
    interop::vllm::Arrays arrays;
    arrays.num_tokens = call.problem.seqstarts.back();
    arrays.slot_mapping = slot_mapping.data<std::int64_t>();
    batch.store_slots = arrays.batch(1).store_slots;
    return batch;
}

Batch flashinfer_batch(const Call& call) {
    interop::flashinfer::Arrays arrays;
    arrays.batch_size = call.problem.batch_size();
    arrays.qo_indptr = call.seqstarts.data<std::int32_t>();
    arrays.paged_kv_indptr = call.rowstarts.data<std::int32_t>();
    arrays.paged_kv_indices = call.cachestarts.data<std::int32_t>();
    arrays.nnz = call.problem.rowstarts.back();
    arrays.paged_kv_last_page_len = call.last_page_len.data<std::int32_t>();
    arrays.num_pages = call.num_blocks;
    arrays.max_qo_len = longest_of(call.problem).tokens;
    arrays.max_kv_len = longest_of(call.problem).keys;
    return arrays.batch(call.problem.num_heads);
}

/// Without the arrays of requests but the first.
template <class Starts, class Lens = Starts, class Rows = Starts>
interop::sglang::Arrays<Starts, Lens, Rows> sglang_arrays(const Call& call) {
    interop::sglang::Arrays<Starts, Lens, Rows> arrays;
    arrays.batch_size = call.problem.batch_size();
    arrays.qo_indptr = call.seqstarts.data<Starts>();
    arrays.req_to_token = call.cachestarts.data<std::int32_t>();
    arrays.requests = call.cachestarts.strided().shape[0];
    arrays.max_context_len = call.cachestarts.strided().shape[1];
    arrays.slots = call.max_tokens;
    arrays.max_extend_len = longest_of(call.problem).tokens;
    arrays.max_seq_len = longest_of(call.problem).keys;
    return arrays;
}

template <class Index>
Batch sglang_batch(const Call& call) {
    auto arrays = sglang_arrays<Index>(call);
    arrays.seq_lens = call.kvlens.data<Index>();
    arrays.req_pool_indices = call.row_index.data<Index>();
    return arrays.batch(call.problem.num_heads);
}

struct Engine {
    const char* name;
    const char* fields;  // what the header says that a spec needs
    const char* layout;
    TableRows rows;
    KeysBy keys_by;
    Batch (*batch)(const Call&);
};

constexpr Engine kEngines[] = {
    {"vLLM", interop::vllm::kSpecFields, "layout=2NTHD,page_size=16", TableRows::kPadded, KeysBy::kLens, vllm_batch},
    {"vLLM, its names of layouts' orders", interop::vllm::kSpecFields, "layout=NHT2D,page_size=32", TableRows::kPadded,
     KeysBy::kLens, vllm_batch},
    {"FlashInfer NHD", interop::flashinfer::kSpecFields, "layout=N2THD,page_size=16", TableRows::kCsr,
     KeysBy::kLastPage, flashinfer_batch},
    {"FlashInfer HND, keys and values apart", interop::flashinfer::kSpecFields, "layout=NHTD,page_size=8",
     TableRows::kCsr, KeysBy::kLastPage, flashinfer_batch},
    {"SGLang", interop::sglang::kSpecFields, "layout=THD,starts_type=i64", TableRows::kIndexed, KeysBy::kLens,
     sglang_batch<std::int64_t>},
    {"SGLang, 32-bit arrays", interop::sglang::kSpecFields, "layout=THD,starts_type=i32", TableRows::kIndexed,
     KeysBy::kLens, sglang_batch<std::int32_t>},
};

constexpr const char* kOps[] = {"op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f16,",
                                "op=MultiHeadCacheAttention,head_dim=32,group=1,t1=f32,quant_bit=8,",
                                "op=KeyValueCache,head_dim=40,t1=f16,quant_bit=4,quant_group=8,"};

Call call_of(const Engine& engine, const char* op) {
    Case which = ragged(std::string(op) + engine.layout + "," + engine.fields);
    which.rows = engine.rows;
    which.keys_by = engine.keys_by;
    which.layer_tables = false;
    which.num_layers = 1;
    which.num_repeat = 1;
    which.bounds_known = true;
    return make_call(which, 11, 12);
}

/// What the arrays make in place of the call's own batch.
std::string judge_with(const Call& call, const Batch& batch) {
    Bound bound = bind(call);
    const auto decoding = bound.batch.decoding_batches;
    const float scale = bound.batch.softmax_scale;
    bound.batch = batch;
    bound.batch.decoding_batches = decoding;
    bound.batch.softmax_scale = scale;
    const std::string refused = run_bound(bound, {});
    return refused.empty() ? judge(call) : refused;
}

TEST_CASE("engines' index arrays as they are give what the oracle says") {
    for (const Engine& engine : kEngines) {
        for (const char* op : kOps) {
            CAPTURE(engine.name);
            CAPTURE(op);
            const Call call = call_of(engine, op);
            CHECK(judge_with(call, engine.batch(call)) == "");
        }
    }
}

/// A pool of as many layers and kv heads as the call's. Of its memory nobody reads.
interop::KsanaPool pool_like(const Call& call) {
    const Problem& problem = call.problem;
    kvjit_spec spec = call.which.spec;
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) spec.page_size = 16;
    auto pool = interop::KsanaPool::allocate(spec, {problem.num_layers, problem.num_kv_heads}, 2);
    REQUIRE_MESSAGE(pool.has_value(), pool.error().message());
    return *std::move(pool);
}

interop::KsanaArrays ksana_arrays(const Call& call) {
    interop::KsanaArrays arrays;
    arrays.batch_size = call.problem.batch_size();
    arrays.num_tokens = call.problem.seqstarts.back();
    arrays.seqstarts = call.seqstarts.data<std::int32_t>();
    arrays.max_seqlen = longest_of(call.problem).tokens;
    arrays.max_kvlen = longest_of(call.problem).keys;
    return arrays;
}

/// Ids and slots of the call's cache in place of the pool's.
std::string judge_ksana(const Call& call, Batch batch) {
    batch.num_blocks = call.num_blocks;
    batch.max_tokens = call.max_tokens;
    return judge_with(call, batch);
}

Case ksana_case(const char* op, const char* layout) {
    Case which = ragged(std::string(op) + layout + "," + interop::kKsanaSpecFields);
    which.num_layers = 3;
    which.layer_tables = true;
    return which;
}

constexpr const char* kKsanaOps[] = {kOps[0], kOps[1]};

TEST_CASE("KsanaLLM's layers_block_table and layers_slot_mapping") {
    for (const char* op : kKsanaOps) {
        CAPTURE(op);
        Case which = ksana_case(op, "layout=atb,page_size=16");
        which.keys_by = KeysBy::kLens;
        which.slots_by = SlotsBy::kChosenByLayer;
        const Call call = make_call(which, 31, 32);
        interop::KsanaArrays arrays = ksana_arrays(call);
        arrays.seq_len_host = call.kvlens.data<std::int32_t>();
        arrays.max_num_blocks_per_query = call.problem.table_columns;
        arrays.layers_block_table = call.cachestarts.data<std::int32_t>();
        arrays.layers_slot_mapping = call.store_slots.data<std::int32_t>();
        CHECK(judge_ksana(call, arrays.batch(pool_like(call))) == "");
    }
}

TEST_CASE("KsanaLLM's layers_slot_mapping of prompts, which says where all keys are") {
    for (const char* op : kKsanaOps) {
        CAPTURE(op);
        Case which = ksana_case(op, "layout=THD,cache_mode=token_table");
        which.past_tokens = PastTokens::kNone;
        const Call call = make_call(which, 41, 42);
        REQUIRE(call.problem.seqstarts == call.problem.kvstarts);
        interop::KsanaArrays arrays = ksana_arrays(call);
        arrays.layers_slot_mapping = call.cachestarts.data<std::int32_t>();
        CHECK(judge_ksana(call, arrays.prompts(pool_like(call))) == "");
    }
}

/// SGLang's own lengths and rows are int64, whatever its backends make of where requests begin.
TEST_CASE("SGLang's arrays of several types are copied to one") {
    for (const char* op : kOps) {
        CAPTURE(op);
        const Call call = call_of(kEngines[std::size(kEngines) - 1], op);
        const std::int64_t count = call.problem.batch_size();
        const Placed lens = Placed::integers(lengths_of(call.problem), KVJIT_I64, Guard::kAfter);
        const Placed rows = Placed::integers(call.problem.row_index, KVJIT_I64, Guard::kAfter);
        const Placed copies =
            Placed::integers(std::vector<std::int64_t>(Problem::at(2 * count)), KVJIT_I32, Guard::kAfter);
        auto arrays = sglang_arrays<std::int32_t, std::int64_t, std::int64_t>(call);
        arrays.seq_lens = lens.data<std::int64_t>();
        arrays.req_pool_indices = rows.data<std::int64_t>();
        auto* const room = const_cast<std::int32_t*>(copies.data<std::int32_t>());
        CHECK(judge_with(call, arrays.batch(call.problem.num_heads, room)) == "");
    }
}

TEST_CASE("SGLang's lengths and rows that a copy can't hold stay wrong") {
    interop::sglang::Arrays<std::int32_t, std::int64_t, std::int64_t> arrays;
    const std::int64_t lens[] = {3, (std::int64_t{1} << 32) + 3}, rows[] = {-(std::int64_t{1} << 32), 1};
    std::int32_t copies[4] = {};
    arrays.batch_size = 2;
    arrays.seq_lens = lens;
    arrays.req_pool_indices = rows;
    arrays.batch(1, copies);
    CHECK(copies[0] == 3);
    CHECK(copies[1] == std::numeric_limits<std::int32_t>::max());
    CHECK(copies[2] == std::numeric_limits<std::int32_t>::min());
    CHECK(copies[3] == 1);
}

TEST_CASE("vLLM's slot_mapping sends new tokens, or nowhere") {
    for (const char* op : kOps) {
        CAPTURE(op);
        Case which = call_of(kEngines[0], op).which;
        which.slots_by = SlotsBy::kChosen;
        const Call call = make_call(which, 21, 22);
        REQUIRE(std::ranges::count_if(call.problem.store_slots, [](std::int64_t slot) { return slot < 0; }) > 0);
        const Placed slots = Placed::integers(call.problem.store_slots, KVJIT_I64, Guard::kAfter);
        CHECK(judge_with(call, vllm_slots_batch(call, slots)) == "");
    }
}

}  // namespace
}  // namespace kvjit::test
