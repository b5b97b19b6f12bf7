// Blocks as objects: one misuse a case. What a refusal says, and that not a byte is written.
#include "kvjit/blocks.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "public_call.h"

namespace kvjit::test {
namespace {

constexpr const char* kPool = "op=KeyValueCache,head_dim=8,t1=f16,cache_mode=block_table,page_size=4,layout=N2LTHD";
constexpr const char* kQuantised =
    "op=KeyValueCache,head_dim=8,t1=f16,quant_bit=8,cache_mode=block_table,page_size=4,layout=N2LTHD";
constexpr const char* kPages = "op=KeyValueCache,head_dim=8,t1=f16,cache_mode=page_table,page_size=4,layout=L2HTD";
constexpr const char* kAddresses =
    "op=KeyValueCache,head_dim=8,t1=f16,cache_mode=block_pointers,page_size=4,"
    "layout=2LTHD";
constexpr const char* kQuantisedAddresses =
    "op=KeyValueCache,head_dim=8,t1=f16,quant_bit=8,cache_mode=block_pointers,page_size=4,layout=2LTHD";
constexpr std::int64_t kHeads = 2, kLayers = 3, kBlocks = 6, kTokens = 4 * kBlocks;
constexpr std::int64_t kBlockBytes = 2 * kLayers * 4 * kHeads * 8 * 2;  // of f16 codes

/// A right cache of kBlocks blocks.
struct Cache {
    explicit Cache(const char* text) : codes(8192, 0xa5), scales(8192, 0x5a) {
        REQUIRE(kvjit_spec_parse(text, &spec, nullptr) == KVJIT_OK);
        kvjit_batch_init(&batch);
        batch.num_kv_heads = kHeads;
        batch.num_layers = kLayers;
        kvjit_tensors_init(&tensors);
        kvjit_blocks_init(&blocks);
        const bool is_table = spec.cache_mode == KVJIT_BLOCK_TABLE,
                   is_pointers = spec.cache_mode == KVJIT_BLOCK_POINTERS;
        batch.num_blocks = is_table ? kBlocks : 0;
        batch.max_tokens = is_table || is_pointers ? 0 : kTokens;
        show();
        blocks.spec = &spec;
        blocks.batch = &batch;
        blocks.tensors = &tensors;
    }
    Cache(const Cache&) = delete;

    /// Tensors as spec and batch are now. Blocks at addresses are none.
    void show() {
        const auto tensor = [this](const RowType& row, const std::vector<unsigned char>& memory) {
            return dense_tensor(memory.data(), row.dtype, cache_shape(spec, batch, spec.layout, row.elements));
        };
        if (spec.cache_mode == KVJIT_BLOCK_POINTERS) return;
        tensors.cache = tensor(code_row(spec), codes);
        if (spec.quant_bit != 0) tensors.scale = tensor(scale_row(spec), scales);
    }
    std::int64_t address(std::int64_t byte) const {
        return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(codes.data())) + byte;
    }
    std::int64_t scale_address(std::int64_t byte) const {
        return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(scales.data())) + byte;
    }

    kvjit_spec spec;
    kvjit_batch batch;
    kvjit_tensors tensors;
    kvjit_blocks blocks;
    std::vector<unsigned char> codes, scales;
};

using Ids = std::vector<std::int64_t>;

/// One call: `first` and `second` are the same in those that have one cache.
struct Call {
    Cache &first, &second;
    const kvjit_blocks *a, *b;
    kvjit_blocks_options options;
    Ids first_ids{0, 1}, second_ids{2, 3};
    const std::int64_t* first_array;
    const std::int64_t* second_array;
    std::int64_t count = 2;

    Call(Cache& from, Cache& to) : first(from), second(to), a(&from.blocks), b(&to.blocks) {
        kvjit_blocks_options_init(&options);
        set({0, 1}, {2, 3});
    }
    Call(const Call&) = delete;
    void set(const Ids& from, const Ids& to) {
        first_ids = from;
        second_ids = to;
        first_array = first_ids.data();
        second_array = second_ids.data();
    }
};

kvjit_status copy(const Call& c, kvjit_error* e) {
    return kvjit_blocks_copy(c.a, c.b, c.first_array, c.second_array, c.count, &c.options, e);
}
kvjit_status move(const Call& c, kvjit_error* e) {
    return kvjit_blocks_move(c.b, c.first_array, c.second_array, c.count, &c.options, e);
}
kvjit_status swap(const Call& c, kvjit_error* e) {
    return kvjit_blocks_swap(c.a, c.b, c.first_array, c.second_array, c.count, &c.options, e);
}
kvjit_status zero(const Call& c, kvjit_error* e) {
    return kvjit_blocks_zero(c.b, c.second_array, c.count, &c.options, e);
}
using Operation = kvjit_status (*)(const Call&, kvjit_error*);

/// The call is refused as said, and all bytes are as they were.
void expect_misuse(Call& call, Operation run, const Refusal& want) {
    const auto codes = call.first.codes, scales = call.first.scales, more = call.second.codes,
               more_scales = call.second.scales;
    kvjit_error e = new_error();
    const kvjit_status status = run(call, &e);
    REQUIRE(status != KVJIT_OK);
    expect_error(status, e, want);
    CHECK(codes == call.first.codes);
    CHECK(scales == call.first.scales);
    CHECK(more == call.second.codes);
    CHECK(more_scales == call.second.scales);
}

struct Misuse {
    std::string_view name;
    void (*spoil)(Call&);
    Refusal want;
};

/// Of the second cache, named "to".
constexpr Misuse kCacheMisuses[] = {
    {"none", [](Call& c) { c.b = nullptr; }, bad_argument("to")},
    {"no spec", [](Call& c) { c.second.blocks.spec = nullptr; }, bad_argument("to.spec")},
    {"no batch", [](Call& c) { c.second.blocks.batch = nullptr; }, bad_argument("to.batch")},
    {"no tensors", [](Call& c) { c.second.blocks.tensors = nullptr; }, bad_argument("to.tensors")},
    {"a memory that there is not", [](Call& c) { c.second.blocks.memory = 2; },
     bad_argument("to.memory", 2, KVJIT_MEMORY_CUDA)},
    {"a spec that is none", [](Call& c) { c.second.spec.head_dim = 12; }, bad_spec("to.spec.head_dim", 12, 8)},
    {"an operator without a cache", [](Call& c) { kvjit_spec_parse("op=MultiHeadAttention", &c.second.spec, nullptr); },
     bad_spec("to.spec.op")},
    {"an operator of two caches", [](Call& c) { kvjit_spec_parse("op=Relayout,head_dim=8", &c.second.spec, nullptr); },
     bad_spec("to.spec.op")},
    {"values of another head_dim", [](Call& c) { c.second.spec.value_head_dim = 16; },
     bad_spec("to.spec.value_head_dim")},
    {"no heads", [](Call& c) { c.second.batch.num_kv_heads = 0; }, bad_argument("to.batch.num_heads", 0, 1)},
    {"no layers", [](Call& c) { c.second.batch.num_layers = 0; }, bad_argument("to.batch.num_layers", 0, 1)},
    {"fewer blocks than none", [](Call& c) { c.second.batch.num_blocks = -1; },
     bad_argument("to.batch.num_blocks", -1, 0)},
    {"blocks beyond 64 bits of bytes", [](Call& c) { c.second.batch.num_blocks = INT64_MAX; },
     bad_argument("to.batch.num_blocks", INT64_MAX, INT64_MAX / (kBlockBytes / 2 * 8))},
    {"no cache", [](Call& c) { c.second.tensors.cache = kvjit_tensor{}; }, bad_argument("to.tensors.cache")},
    {"scales that there are not", [](Call& c) { c.second.tensors.scale = c.second.tensors.cache; },
     bad_argument("to.tensors.scale")},
    {"another type", [](Call& c) { c.second.tensors.cache.dtype = KVJIT_F32; },
     bad_dtype("to.tensors.cache.dtype", KVJIT_F32, KVJIT_F16)},
    {"another extent", [](Call& c) { c.second.tensors.cache.shape[0] = 5; },
     bad_shape("to.tensors.cache.shape[0]", 5, kBlocks)},
    {"another rank", [](Call& c) { c.second.tensors.cache.rank = 5; }, bad_shape("to.tensors.cache.rank", 5, 6)},
    {"elements that overlap", [](Call& c) { c.second.tensors.cache.strides[0] = 8; },
     bad_shape("to.tensors.cache.strides[0]", 8, 16)},
    {"a null pointer", [](Call& c) { c.second.tensors.cache.data = nullptr; }, bad_argument("to.tensors.cache.data")},
    {"a pointer between two elements", [](Call& c) { c.second.tensors.cache.data = c.second.codes.data() + 1; },
     bad_argument("to.tensors.cache.data", 1, 2)},
    // Formats that differ.
    {"another head_dim", [](Call& c) { c.second.spec.head_dim = 16, c.second.batch.num_blocks = 1, c.second.show(); },
     bad_argument("to.spec.head_dim", 16, 8)},
    {"other heads", [](Call& c) { c.second.batch.num_kv_heads = 1, c.second.show(); },
     bad_argument("to.batch.num_kv_heads", 1, kHeads)},
    {"other layers", [](Call& c) { c.second.batch.num_layers = 1, c.second.show(); },
     bad_argument("to.batch.num_layers", 1, kLayers)},
    {"other pages", [](Call& c) { c.second.spec.page_size = 2, c.second.show(); },
     bad_argument("to.spec.page_size", 2, 4)},
    {"sequences of other lengths",
     [](Call& c) {
         c.second.spec.cache_mode = KVJIT_SEQUENCE_TABLE;
         c.second.spec.page_size = 128;
         c.second.batch.max_tokens = 3;
         c.second.show();
     },
     bad_argument("to.batch.max_tokens", 3, 4)},
    {"another type of codes",
     [](Call& c) { c.second.spec.t2 = KVJIT_F32, c.second.batch.num_blocks = 1, c.second.show(); },
     bad_dtype("to.spec.t2", KVJIT_F32, KVJIT_F16)},
    // How.
    {"a stream for host memory", [](Call& c) { c.options.stream = &c; }, bad_argument("stream")},
    {"a GPU for host memory", [](Call& c) { c.options.device = 1; }, bad_argument("device")},
    {"too many threads", [](Call& c) { c.options.num_threads = 1025; }, bad_argument("num_threads", 1025, 1024)},
    {"spinning for too long", [](Call& c) { c.options.spin_us = 1000001; }, bad_argument("spin_us", 1000001, 1000000)},
    {"spinning for a GPU", [](Call& c) { c.second.blocks.memory = KVJIT_MEMORY_CUDA, c.options.spin_us = 0; },
     bad_argument("spin_us")},
    {"threads for a GPU", [](Call& c) { c.second.blocks.memory = KVJIT_MEMORY_CUDA, c.options.num_threads = 1; },
     bad_argument("num_threads")},
    {"an executor for a GPU",
     [](Call& c) {
         static const kvjit_executor executor{sizeof executor, 1, nullptr,
                                              [](void*, void (*)(void*, int64_t), void*, int64_t) {}};
         c.second.blocks.memory = KVJIT_MEMORY_CUDA, c.options.executor = &executor;
     },
     bad_argument("executor")},
    {"a GPU before the first", [](Call& c) { c.second.blocks.memory = KVJIT_MEMORY_CUDA, c.options.device = -1; },
     bad_argument("device", -1, 0)},
    {"less than nothing", [](Call& c) { c.count = -1; }, bad_argument("count", -1, 0)},
    {"more than there can be", [](Call& c) { c.count = INT64_MAX; }, bad_argument("count", INT64_MAX, INT64_MAX / 8)},
    {"no ids", [](Call& c) { c.first_array = nullptr; }, bad_argument("from_ids")},
    {"no ids of destinations", [](Call& c) { c.second_array = nullptr; }, bad_argument("to_ids")},
    {"ids between two numbers",
     [](Call& c) {
         c.second_array = reinterpret_cast<const std::int64_t*>(reinterpret_cast<char*>(c.second_ids.data()) + 4);
     },
     bad_argument("to_ids", 4, 8)},
    // Ids.
    {"a block below the first", [](Call& c) { c.set({0, -1}, {2, 3}); }, bad_index("from_ids[1]", -1, kBlocks)},
    {"a block past the last", [](Call& c) { c.set({0, 1}, {kBlocks, 3}); }, bad_index("to_ids[0]", kBlocks, kBlocks)},
    {"a destination twice", [](Call& c) { c.set({0, 1}, {2, 2}); }, bad_index("to_ids[1]", 2, 0)},
};

TEST_CASE("what can be wrong with a cache, with ids and with how they are used") {
    for (const Misuse& misuse : kCacheMisuses) {
        CAPTURE(misuse.name);
        Cache from(kPool), to(kPool);
        Call call(from, to);
        misuse.spoil(call);
        expect_misuse(call, copy, misuse.want);
    }
}

TEST_CASE("a quantised cache and another one have no blocks in common, nor have two of other groups or scales") {
    Cache plain(kPool), quantised(kQuantised), other(kQuantised);
    Call call(plain, quantised);
    expect_misuse(call, copy, bad_argument("to.spec.quant_bit", 8, 0));
    other.spec.quant_group = 4;
    other.tensors.scale = dense_tensor(other.scales.data(), KVJIT_F16, {kBlocks, 2, kLayers, 4, kHeads, 2});
    Call groups(quantised, other);
    expect_misuse(groups, copy, bad_argument("to.spec.quant_group", 4, 8));
    Cache wide(kQuantised);
    wide.spec.t3 = KVJIT_F32;
    wide.tensors.scale = dense_tensor(wide.scales.data(), KVJIT_F32, {kBlocks, 2, kLayers, 4, kHeads, 1});
    Call types(quantised, wide);
    expect_misuse(types, copy, bad_dtype("to.spec.t3", KVJIT_F32, KVJIT_F16));
    wide.tensors.scale = kvjit_tensor{};
    expect_misuse(types, copy, bad_argument("to.tensors.scale"));
}

TEST_CASE("heads that follow from query heads must be whole") {
    Cache cache(kPool);
    kvjit_spec_parse(
        "op=MultiHeadCacheAttention,group=4,head_dim=8,t1=f16,cache_mode=block_table,page_size=4,"
        "layout=N2LTHD",
        &cache.spec, nullptr);
    cache.batch.num_kv_heads = 0;
    cache.batch.num_heads = 9;
    Call call(cache, cache);
    expect_misuse(call, zero, bad_argument("blocks.batch.num_heads", 9, 4));
    cache.batch.num_heads = 4 * kHeads;
    CHECK(zero(call, nullptr) == KVJIT_OK);
}

struct IdMisuse {
    std::string_view name;
    Operation run;
    Ids first, second;
    Refusal want;
};

void expect_misuses(const char* cache_text, std::span<const IdMisuse> misuses) {
    for (const IdMisuse& misuse : misuses) {
        CAPTURE(misuse.name);
        Cache cache(cache_text);
        Call call(cache, cache);
        call.set(misuse.first, misuse.second);
        expect_misuse(call, misuse.run, misuse.want);
    }
}

TEST_CASE("within one cache what is written is apart from all else") {
    const IdMisuse kMisuses[] = {
        {"a source that is a destination", copy, {0, 3}, {3, 4}, bad_index("to_ids[0]", 3)},
        {"a copy onto itself", copy, {0, 1}, {0, 2}, bad_index("to_ids[0]", 0)},
        {"two moves to one place", move, {0, 1}, {3, 3}, bad_index("to_ids[1]", 3)},
        {"a block that changes places with itself", swap, {0, 1}, {0, 2}, bad_index("b_ids[0]", 0)},
        {"a block that changes places twice", swap, {0, 1}, {1, 2}, bad_index("b_ids[0]", 1)},
        {"a block that stands twice on one side", swap, {5, 5}, {1, 2}, bad_index("a_ids[1]", 5)},
        {"a block that is zeroed twice", zero, {}, {4, 4}, bad_index("ids[1]", 4)},
        {"a move from outside", move, {0, 6}, {3, 4}, bad_index("from_ids[1]", 6, kBlocks)},
        {"a swap with outside", swap, {0, 1}, {3, -7}, bad_index("b_ids[1]", -7, kBlocks)},
        {"zeros outside", zero, {}, {3, 6}, bad_index("ids[1]", 6, kBlocks)},
    };
    expect_misuses(kPool, kMisuses);
}

TEST_CASE("another struct of the same cache is the same cache, also where it has fewer blocks") {
    Cache cache(kPool);
    kvjit_batch fewer = cache.batch;
    kvjit_tensors first = cache.tensors;
    fewer.num_blocks = first.cache.shape[0] = 4;
    kvjit_blocks part = cache.blocks;
    part.batch = &fewer;
    part.tensors = &first;
    Call call(cache, cache);
    call.a = &part;
    call.set({0, 3}, {3, 5});
    expect_misuse(call, copy, bad_index("to_ids[0]", 3));
}

TEST_CASE("two views of one memory that differ are refused") {
    Cache cache(kPool), other(kPool);
    other.tensors.cache.data = cache.codes.data();
    other.tensors.cache.strides[0] *= 2;
    other.batch.num_blocks = other.tensors.cache.shape[0] = 3;
    Call call(cache, other);
    expect_misuse(call, copy, bad_argument("to.tensors.cache"));
}

TEST_CASE("pages begin and end inside of the cache, and don't overlap what is written") {
    const IdMisuse kMisuses[] = {
        {"before the first token", zero, {}, {-1, 8}, bad_index("ids[0]", -1, kTokens)},
        {"its last token is past the last", zero, {}, {0, 21}, bad_index("ids[1]", 21, kTokens)},
        {"far past it", zero, {}, {0, INT64_MAX}, bad_index("ids[1]", INT64_MAX, kTokens)},
        {"two that share tokens", zero, {}, {3, 0}, bad_index("ids[0]", 3)},
        {"a source's last token", copy, {0, 12}, {3, 20}, bad_index("to_ids[0]", 3)},
        {"a source's first token", copy, {9, 0}, {6, 20}, bad_index("to_ids[0]", 6)},
        {"a move by less than a page", move, {0, 12}, {2, 20}, bad_index("to_ids[0]", 2)},
    };
    expect_misuses(kPages, kMisuses);
}

TEST_CASE("pieces that don't fit into each other, and quantised pieces, are refused") {
    Cache a(kPool), b(kPool);
    for (Cache* cache : {&a, &b}) {
        cache->spec.head_dim = 24;
        cache->batch.num_blocks = 1;
        const std::int64_t inner = cache == &a ? 4 : 6;
        std::snprintf(cache->spec.layout, sizeof cache->spec.layout, "N2LTHDd%d", static_cast<int>(inner));
        cache->show();
    }
    Call call(a, b);
    call.count = 0;
    expect_misuse(call, copy, bad_argument("to.spec.layout"));
    b.spec.quant_bit = 8;
    expect_misuse(call, copy, bad_spec("to.spec.quant_bit", 8, 0));
}

TEST_CASE("addresses are there, aligned, and apart by a block") {
    Cache cache(kAddresses);
    cache.blocks.tensors = nullptr;
    Call call(cache, cache);
    const std::int64_t begin = cache.address(0);
    const auto expect = [&](Operation run, const Ids& first, const Ids& second, const Refusal& want) {
        call.set(first, second);
        Refusal shown = want;
        expect_misuse(call, run, shown);
    };
    const std::int64_t most = INT64_MAX - kBlockBytes;
    expect(zero, {}, {begin, 0}, bad_index("ids[1]", 0, 1));
    expect(zero, {}, {-8, begin}, bad_index("ids[0]", -8, 1));
    expect(zero, {}, {begin, begin + kBlockBytes + 1}, bad_index("ids[1]", begin + kBlockBytes + 1, 2));
    expect(zero, {}, {begin, INT64_MAX - 1}, bad_index("ids[1]", INT64_MAX - 1, most));
    expect(zero, {}, {begin, begin + kBlockBytes - 2}, bad_index("ids[1]", begin + kBlockBytes - 2));
    expect(copy, {begin, begin + kBlockBytes}, {begin + 2 * kBlockBytes, begin + 2}, bad_index("to_ids[1]", begin + 2));
    Cache other(kAddresses);
    Call across(cache, other);
    across.set({begin, begin + kBlockBytes}, {other.address(0), begin});
    expect_misuse(across, copy, bad_index("to_ids[1]", begin));
}

TEST_CASE("blocks of scales have addresses after those of the codes, apart from all") {
    Cache cache(kQuantisedAddresses);
    Call call(cache, cache);
    const std::int64_t codes = cache.address(0), scales = cache.scale_address(0), bytes = kBlockBytes / 2;
    const auto expect = [&](const Ids& ids, const Refusal& want) {
        call.set({}, ids);
        expect_misuse(call, zero, want);
    };
    expect({codes, codes + bytes, scales, 0}, bad_index("ids[3]", 0, 1));
    expect({codes, codes + bytes, scales + 1, scales + 512}, bad_index("ids[2]", scales + 1, 2));
    expect({codes, codes + bytes, scales, scales}, bad_index("ids[3]", scales));
    expect({codes, codes + bytes, scales, codes + 2}, bad_index("ids[3]", codes + 2));
    call.set({}, {codes, codes + bytes, scales, scales + 512});
    CHECK(zero(call, nullptr) == KVJIT_OK);
    CHECK(cache.scales[0] == 0);
    CHECK(cache.scales[512] == 0);
}

TEST_CASE("structs are set up as far as they go, and not where there is none") {
    kvjit_blocks_init_sized(nullptr, sizeof(kvjit_blocks));
    kvjit_blocks_options_init_sized(nullptr, sizeof(kvjit_blocks_options));
    struct Newer {
        kvjit_blocks_options options;
        std::int64_t more = -1;
    } newer;
    kvjit_blocks_options_init_sized(&newer.options, sizeof newer);
    CHECK(newer.options.struct_size == sizeof newer);
    CHECK(newer.more == 0);
    kvjit_blocks_options_init_sized(&newer.options, 8);
    CHECK(newer.options.struct_size == 8);
    Cache cache(kPool);
    CHECK(kvjit_blocks_zero(&cache.blocks, nullptr, 0, &newer.options, nullptr) == KVJIT_OK);
    CHECK(kvjit_blocks_zero(&cache.blocks, nullptr, 0, nullptr, nullptr) == KVJIT_OK);
    CHECK(kvjit_blocks_zero(nullptr, nullptr, 0, nullptr, nullptr) == KVJIT_BAD_ARGUMENT);
}

TEST_CASE("nothing to do is done, also with no ids and no blocks") {
    Cache cache(kPool), empty(kPool);
    empty.batch.num_blocks = empty.tensors.cache.shape[0] = 0;
    empty.tensors.cache.data = nullptr;
    Call call(cache, empty);
    call.count = 0;
    call.first_array = call.second_array = nullptr;
    for (const Operation run : {copy, move, swap, zero}) CHECK(run(call, nullptr) == KVJIT_OK);
    call.count = 1;
    call.set({0}, {0});
    expect_misuse(call, copy, bad_index("to_ids[0]", 0, 0));
}

}  // namespace
}  // namespace kvjit::test
