// KsanaLLM's pool through its views: what kvjit writes through one, plain loops by ATB's convention and kvjit read
// through another, to the last bit, and the reverse.
#include "kvjit/interop/ksana.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace kvjit::interop::test {
namespace {

constexpr std::int64_t kLayers = 3, kHeads = 2, kDim = 16, kPage = 4, kBlocks = 11;
constexpr std::int64_t kSequences = 3, kColumns = 3, kTokens = 18;
constexpr KsanaView kViews[] = {KsanaView::kPointers, KsanaView::kPool, KsanaView::kAtb, KsanaView::kAtbSlots};

const Engine& engine() {
    static const Engine made = *Engine::create();
    return made;
}

struct Form {
    const char* name;
    const char* fields;
    std::int64_t row_bytes, scale_row_bytes;  // of a head of a token
};
constexpr Form kForms[] = {{"f32", "t1=f32", 64, 0},
                           {"f16", "t1=f16", 32, 0},
                           {"i8", "t1=f32,quant_bit=8,quant_group=8", 16, 8},
                           {"i4", "t1=f32,quant_bit=4,quant_group=4,t3=f16", 8, 8}};

KernelSpec spec_of(const Form& form) {
    return *KernelSpec::parse(std::string("op=KeyValueCache,head_dim=16,cache_mode=page_table,page_size=4,") +
                              form.fields);
}

/// A pool of its own memory, of which no byte has been written.
KsanaPool pool_of(const kvjit_spec& spec) {
    Result<KsanaPool> pool = KsanaPool::allocate(spec, {kLayers, kHeads, 16}, kBlocks);
    REQUIRE_MESSAGE(pool.has_value(), pool.error().message());
    std::memset(pool->codes(), 0x5a, static_cast<std::size_t>(pool->block_bytes() * kBlocks));
    if (pool->scales() != nullptr)
        std::memset(pool->scales(), 0x3c, static_cast<std::size_t>(pool->scale_block_bytes() * kBlocks));
    return *std::move(pool);
}
KsanaPool pool_of(const Form& form) {
    return pool_of(spec_of(form));
}

/// Three sequences of 6, 3 and 9 tokens, all of them new; their blocks as the engine knows them, -1 past a row's end.
struct Step {
    std::vector<std::int64_t> starts{0, 6, 9, 18};
    std::vector<std::int32_t> blocks{7, 2, -1, 10, -1, -1, 0, 5, 1};
    std::vector<std::int64_t> entries = std::vector<std::int64_t>(kSequences * kColumns);
    std::vector<std::int64_t> scale_entries = entries;

    KsanaTable<const std::int32_t> table() const { return {blocks.data(), kSequences, kColumns}; }
    KsanaTable<std::int64_t> made() { return {entries.data(), kSequences, kColumns}; }
    KsanaTable<std::int64_t> made_scales() { return {scale_entries.data(), kSequences, kColumns}; }

    Batch batch(const KsanaPool& pool, KsanaView view, std::int64_t layer, bool new_tokens) {
        Batch batch;
        batch.batch_size = kSequences;
        batch.seqstarts = new_tokens ? starts.data() : none.data();
        batch.kvstarts = starts.data();
        pool.set_extents(view, batch);
        if (view == KsanaView::kPointers) {
            REQUIRE(to_pointers(pool, table(), made()).has_value());
            if (pool.scales() != nullptr) REQUIRE(to_scale_pointers(pool, table(), made_scales()).has_value());
            if (pool.scales() != nullptr)
                batch.scalestarts = Tensor(scale_entries.data(), KVJIT_I64, {kSequences, kColumns});
        } else if (view == KsanaView::kPool) {
            entries.assign(blocks.begin(), blocks.end());
        } else {
            REQUIRE(to_atb(pool, table(), layer, made()).has_value());
        }
        batch.cachestarts = Tensor(entries.data(), KVJIT_I64, {kSequences, kColumns});
        if (view != KsanaView::kAtbSlots) return batch;
        entries = slots_of(entries);
        batch.cachestarts = Tensor(entries.data(), KVJIT_I64, {kTokens});
        return batch;
    }

    /// Of all tokens, by ATB's ids of a layer.
    template <class Entry>
    std::vector<Entry> slots_of(const std::vector<Entry>& ids) const {
        std::vector<Entry> slots;
        for (std::size_t b = 0; b < kSequences; ++b) {
            for (std::int64_t t = 0; t < starts[b + 1] - starts[b]; ++t) {
                const auto id = ids[b * kColumns + static_cast<std::size_t>(t / kPage)];
                slots.push_back(static_cast<Entry>(id * kPage + t % kPage));
            }
        }
        return slots;
    }

    std::vector<std::int64_t> none = std::vector<std::int64_t>(kSequences + 1);
};

/// (K, Hkv, D) elements of t1, the rows of keys and of values.
struct Rows {
    alignas(16) std::array<char, kTokens * kHeads * kDim * 4> key{}, value{};
};

/// Numbers that differ by layer, token, head and element; small whole ones, which float16 has as well.
Rows new_rows(kvjit_dtype type, std::int64_t layer) {
    Rows rows;
    for (std::int64_t i = 0; i < kTokens * kHeads * kDim; ++i) {
        const std::int64_t number = (i * 37 + layer * 101) % 512 + 1;
        const auto put = [&](char* to, std::int64_t whole) {
            const auto single = static_cast<float>(whole);
            std::uint32_t bits = 0;
            std::memcpy(&bits, &single, sizeof bits);
            const auto half = static_cast<std::uint16_t>((bits >> 13) - ((127 - 15) << 10));
            type == KVJIT_F32 ? std::memcpy(to + i * 4, &single, 4) : std::memcpy(to + i * 2, &half, 2);
        };
        put(rows.key.data(), number);
        put(rows.value.data(), number + 512);
    }
    return rows;
}

Tensor rows_tensor(const std::array<char, kTokens * kHeads * kDim * 4>& rows, kvjit_dtype type) {
    return {static_cast<const void*>(rows.data()), type, {kTokens, kHeads, kDim}};
}

struct Runner {
    const KsanaPool& pool;
    Target target;
    kvjit_dtype type;

    void run(KsanaView view, std::int64_t layer, Rows* stored, Rows* loaded) const {
        Step step;
        const Result<KernelSpec> spec = pool.spec(view);
        REQUIRE_MESSAGE(spec.has_value(), spec.error().message());
        Tensors tensors;
        REQUIRE(pool.set_tensors(view, tensors).has_value());
        if (stored != nullptr) {
            tensors.current_key = rows_tensor(stored->key, type);
            tensors.current_value = rows_tensor(stored->value, type);
        }
        if (loaded != nullptr) {
            tensors.key = rows_tensor(loaded->key, type);
            tensors.value = rows_tensor(loaded->value, type);
        }
        Result<Plan> plan = engine().kernel(*spec, target)->plan(step.batch(pool, view, layer, stored != nullptr));
        REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
        const bool by_layer = view == KsanaView::kAtb || view == KsanaView::kAtbSlots;
        const Result<void> ran = plan->run(tensors, by_layer ? 0 : layer);
        REQUIRE_MESSAGE(ran.has_value(), ran.error().message());
        REQUIRE(plan->synchronize().has_value());
    }
    void store(KsanaView view, std::int64_t layer) const {
        Rows rows = new_rows(type, layer);
        run(view, layer, &rows, nullptr);
    }
    Rows load(KsanaView view, std::int64_t layer) const {
        Rows rows;
        run(view, layer, nullptr, &rows);
        return rows;
    }
};

/// The row of a token's head as ATB finds it: in piece `id` of (block_tokens, Hkv, row) from a base.
char* atb_row(void* base, std::int64_t id, std::int64_t token, std::int64_t head, std::int64_t row_bytes) {
    return static_cast<char*>(base) + ((id * kPage + token) * kHeads + head) * row_bytes;
}

/// Calls `visit(id, token in the piece, head, row of K)` for each token of the step, by ids for one layer.
template <class Visit>
void each_atb_row(const KsanaPool& pool, std::int64_t layer, const Visit& visit) {
    const Step step;
    std::vector<std::int32_t> ids(step.blocks.size());
    REQUIRE(to_atb(pool, step.table(), layer, KsanaTable<std::int32_t>(ids.data(), kSequences, kColumns)).has_value());
    for (std::int64_t b = 0; b < kSequences; ++b) {
        const std::int64_t begin = step.starts[static_cast<std::size_t>(b)];
        for (std::int64_t k = begin; k < step.starts[static_cast<std::size_t>(b + 1)]; ++k) {
            const std::int64_t t = k - begin;
            for (std::int64_t head = 0; head < kHeads; ++head)
                visit(ids[static_cast<std::size_t>(b * kColumns + t / kPage)], t % kPage, head, k * kHeads + head);
        }
    }
}

std::string bytes(const void* memory, std::int64_t count) {
    return {static_cast<const char*>(memory), static_cast<std::size_t>(count)};
}

std::string all_bytes(const KsanaPool& pool) {
    const std::int64_t scales = pool.scales() == nullptr ? 0 : pool.scale_block_bytes() * kBlocks;
    return bytes(pool.codes(), pool.block_bytes() * kBlocks) +
           (scales == 0 ? std::string() : bytes(pool.scales(), scales));
}

template <class Body>
void each_target(const Body& body) {
    body(*Target::host());
    body(*Target::cuda_emulated());
}

kvjit_dtype type_of(const Form& form) {
    return std::string(form.fields).find("t1=f16") == std::string::npos ? KVJIT_F32 : KVJIT_F16;
}

TEST_CASE("what is stored through any view is, byte by byte, what is stored through any other") {
    each_target([](const Target& target) {
        for (const Form& form : kForms) {
            CAPTURE(form.name);
            std::vector<std::string> pools;
            for (const KsanaView view : kViews) {
                const KsanaPool pool = pool_of(form);
                const std::string before = all_bytes(pool);
                const Runner runner{pool, target.text() == "cuda-emulated" ? *Target::cuda_emulated() : *Target::host(),
                                    type_of(form)};
                for (std::int64_t layer = 0; layer < kLayers; ++layer) runner.store(view, layer);
                pools.push_back(all_bytes(pool));
                CHECK(pools.back() != before);
                CHECK(pools.back() == pools.front());
            }
        }
    });
}

/// The arrays that KsanaLLM makes of the step, for all layers.
struct LayersArrays {
    Step step;
    std::vector<std::int32_t> starts, lens, block_table, slot_mapping;

    explicit LayersArrays(const KsanaPool& pool) : starts(step.starts.begin(), step.starts.end()) {
        for (std::size_t b = 0; b < kSequences; ++b) lens.push_back(starts[b + 1] - starts[b]);
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            std::vector<std::int32_t> ids = step.blocks;
            const KsanaTable<std::int32_t> table(ids.data(), kSequences, kColumns);
            REQUIRE(to_atb(pool, table, layer, table).has_value());
            const std::vector<std::int32_t> slots = step.slots_of(ids);
            block_table.insert(block_table.end(), ids.begin(), ids.end());
            slot_mapping.insert(slot_mapping.end(), slots.begin(), slots.end());
        }
    }
    KsanaArrays arrays() const {
        KsanaArrays arrays;
        arrays.batch_size = kSequences;
        arrays.num_tokens = kTokens;
        arrays.max_num_blocks_per_query = kColumns;
        arrays.seqstarts = starts.data();
        arrays.seq_len_host = lens.data();
        arrays.layers_slot_mapping = slot_mapping.data();
        arrays.layers_block_table = block_table.data();
        arrays.max_seqlen = arrays.max_kvlen = 9;
        return arrays;
    }
};

KsanaPool pool_for_arrays(const Form& form) {
    return pool_of(*KernelSpec::parse(std::string(kKsanaSpecFields) + ",page_size=4,op=KeyValueCache,head_dim=16," +
                                      "cache_mode=page_table," + form.fields));
}

TEST_CASE("KsanaLLM's arrays for ATB: one plan stores all layers, with block tables or without") {
    for (const Form& form : kForms) {
        CAPTURE(form.name);
        const KsanaPool expected = pool_of(form);
        const Runner runner{expected, *Target::host(), type_of(form)};
        for (std::int64_t layer = 0; layer < kLayers; ++layer) runner.store(KsanaView::kPointers, layer);
        for (const KsanaView view : {KsanaView::kAtb, KsanaView::kAtbSlots}) {
            const KsanaPool pool = pool_for_arrays(form);
            const LayersArrays layers(pool);
            const KsanaArrays arrays = layers.arrays();
            const Batch batch = view == KsanaView::kAtb ? arrays.batch(pool) : arrays.prompts(pool);
            Result<Plan> plan = engine().kernel(*pool.spec(view))->plan(batch);
            REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
            for (std::int64_t layer = 0; layer < kLayers; ++layer) {
                Rows rows = new_rows(type_of(form), layer);
                Tensors tensors;
                REQUIRE(pool.set_tensors(view, tensors).has_value());
                tensors.current_key = rows_tensor(rows.key, type_of(form));
                tensors.current_value = rows_tensor(rows.value, type_of(form));
                const Result<void> ran = plan->run(tensors, layer);
                REQUIRE_MESSAGE(ran.has_value(), ran.error().message());
            }
            CHECK(all_bytes(pool) == all_bytes(expected));
        }
    }
}

/// Through ATB's own loops: keys and values of all layers, of a cache that isn't quantised.
void copy_by_atb(const KsanaPool& pool, const Form& form, std::vector<Rows>& rows, bool into_cache) {
    const AtbCaches caches = *pool.atb_caches();
    CHECK(caches.num_pieces == kBlocks * 2 * kLayers);
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        Rows& own = rows[static_cast<std::size_t>(layer)];
        each_atb_row(pool, layer, [&](std::int64_t id, std::int64_t token, std::int64_t head, std::int64_t row) {
            char* key = atb_row(caches.kcache, id, token, head, form.row_bytes);
            char* value = atb_row(caches.vcache, id, token, head, form.row_bytes);
            char* own_key = own.key.data() + row * form.row_bytes;
            char* own_value = own.value.data() + row * form.row_bytes;
            const auto count = static_cast<std::size_t>(form.row_bytes);
            std::memcpy(into_cache ? key : own_key, into_cache ? own_key : key, count);
            std::memcpy(into_cache ? value : own_value, into_cache ? own_value : value, count);
        });
    }
}

bool same(const Rows& a, const Rows& b, const Form& form) {
    const auto count = static_cast<std::size_t>(kTokens * kHeads * form.row_bytes);
    return std::memcmp(a.key.data(), b.key.data(), count) == 0 &&
           std::memcmp(a.value.data(), b.value.data(), count) == 0;
}

TEST_CASE("an ATB consumer's loops read what kvjit stored as KsanaLLM does") {
    for (const Form& form : {kForms[0], kForms[1]}) {
        for (const KsanaView view : {KsanaView::kPointers, KsanaView::kPool}) {
            CAPTURE(form.name);
            const KsanaPool pool = pool_of(form);
            const Runner runner{pool, *Target::host(), type_of(form)};
            for (std::int64_t layer = 0; layer < kLayers; ++layer) runner.store(view, layer);
            std::vector<Rows> read(kLayers);
            copy_by_atb(pool, form, read, false);
            for (std::int64_t layer = 0; layer < kLayers; ++layer)
                CHECK(same(read[static_cast<std::size_t>(layer)], new_rows(type_of(form), layer), form));
        }
    }
}

TEST_CASE("kvjit loads through every view what an ATB producer's loops wrote") {
    each_target([](const Target& target) {
        for (const Form& form : {kForms[0], kForms[1]}) {
            CAPTURE(form.name);
            const KsanaPool pool = pool_of(form);
            std::vector<Rows> written;
            for (std::int64_t layer = 0; layer < kLayers; ++layer) written.push_back(new_rows(type_of(form), layer));
            copy_by_atb(pool, form, written, true);
            const Runner runner{pool, target.text() == "cuda-emulated" ? *Target::cuda_emulated() : *Target::host(),
                                type_of(form)};
            for (const KsanaView view : kViews) {
                for (std::int64_t layer = 0; layer < kLayers; ++layer)
                    CHECK(same(runner.load(view, layer), written[static_cast<std::size_t>(layer)], form));
            }
        }
    });
}

TEST_CASE("quantised pools: ATB's pieces of codes and of scales are those of the token") {
    for (const Form& form : {kForms[2], kForms[3]}) {
        CAPTURE(form.name);
        const KsanaPool pool = pool_of(form), other = pool_of(form);
        const Runner runner{pool, *Target::host(), KVJIT_F32};
        for (std::int64_t layer = 0; layer < kLayers; ++layer) runner.store(KsanaView::kPointers, layer);
        const AtbCaches from = *pool.atb_caches(), to = *other.atb_caches();
        const auto copy = [&](void* into, void* of, std::int64_t id, std::int64_t token, std::int64_t head,
                              std::int64_t row_bytes) {
            std::memcpy(atb_row(into, id, token, head, row_bytes), atb_row(of, id, token, head, row_bytes),
                        static_cast<std::size_t>(row_bytes));
        };
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            each_atb_row(pool, layer, [&](std::int64_t id, std::int64_t token, std::int64_t head, std::int64_t) {
                copy(to.kcache, from.kcache, id, token, head, form.row_bytes);
                copy(to.vcache, from.vcache, id, token, head, form.row_bytes);
                copy(to.kscale, from.kscale, id, token, head, form.scale_row_bytes);
                copy(to.vscale, from.vscale, id, token, head, form.scale_row_bytes);
            });
        }
        CHECK(all_bytes(other) == all_bytes(pool));
    }
}

TEST_CASE("tables go there and back, in place and between types, and keep what stands past a row's end") {
    const KsanaPool pool = pool_of(kForms[0]);
    const Step step;
    std::vector<std::int32_t> narrow = step.blocks;
    const KsanaTable<std::int32_t> here(narrow.data(), kSequences, kColumns);
    std::vector<std::int64_t> wide(kSequences * 5, 77);
    const KsanaTable<std::int64_t> there(wide.data(), kSequences, kColumns, 5);
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        REQUIRE(to_atb(pool, here, layer, here).has_value());
        CHECK(narrow[0] == 7 * 2 * kLayers + layer);
        CHECK(narrow[2] == kNoEntry);
        REQUIRE(from_atb(pool, here, layer, there).has_value());
        CHECK(wide == std::vector<std::int64_t>{7, 2, -1, 77, 77, 10, -1, -1, 77, 77, 0, 5, 1, 77, 77});
        REQUIRE(to_pointers(pool, there, there).has_value());
        CHECK(wide[1] == reinterpret_cast<std::intptr_t>(pool.codes()) + 2 * pool.block_bytes());
        REQUIRE(from_pointers(pool, there, here).has_value());
        CHECK(narrow == step.blocks);
    }
    const KsanaTable<std::int64_t> nothing(nullptr, 0, 0);
    CHECK(to_atb(pool, nothing, 0, nothing).has_value());
}

TEST_CASE("blocks are taken and released, each once") {
    KsanaPool pool = pool_of(kForms[0]);
    std::vector<std::int64_t> blocks(kBlocks);
    REQUIRE(pool.take(blocks.data(), 4).has_value());
    CHECK(*pool.take() == 4);
    CHECK(pool.num_free() == kBlocks - 5);
    REQUIRE(pool.release(blocks.data(), 4).has_value());
    REQUIRE(pool.take(blocks.data(), kBlocks - 1).has_value());
    std::vector<bool> seen(kBlocks);
    for (std::int64_t i = 0; i < kBlocks - 1; ++i)
        seen[static_cast<std::size_t>(blocks[static_cast<std::size_t>(i)])] = true;
    for (std::int64_t block = 0; block < kBlocks; ++block) CHECK(seen[static_cast<std::size_t>(block)] == (block != 4));
    CHECK(pool.num_free() == 0);
    KsanaPool moved = std::move(pool);
    CHECK(moved.release(4).has_value());
    CHECK(*moved.take() == 4);
}

}  // namespace
}  // namespace kvjit::interop::test
