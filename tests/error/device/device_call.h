// A call whose every array is the "device's", and each fault that it can have.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace kvjit::test {

inline constexpr std::int64_t kHeads = 2, kDim = 16, kSlots = 64, kPage = 4, kMaxPages = 4, kRows = 8, kKeyRows = 24;
inline constexpr std::int64_t kLongest = 16;  // tokens of a sequence's block

inline const Engine& engine() {
    static const Engine made = *Engine::create();
    return made;
}

template <class T>
struct alignas(16) Row {
    T elements[kDim];
};

/// Three sequences with 1, 3 and 0 new tokens, pages of 4, every array the "device's".
struct Call {
    std::string mode;
    std::vector<std::int64_t> seqstarts = {0, 1, 4, 4};
    std::vector<std::int64_t> kvstarts = {0, 6, 13, 15};
    std::vector<std::int64_t> start_pos = {5, 4, 2};
    std::vector<std::int64_t> table;
    std::vector<std::int64_t> rowstarts;
    std::vector<std::int64_t> row_index;
    std::int64_t max_seqlen = 0, max_kvlen = 0;
    std::int64_t rows = kRows, key_rows = kKeyRows;
    std::vector<Row<float>> tokens = std::vector<Row<float>>(kRows * kHeads, Row<float>{{1, 2, 3}});
    std::vector<Row<float>> cache = std::vector<Row<float>>(kSlots * 2 * kHeads, Row<float>{{7}});
    std::vector<Row<float>> outputs = std::vector<Row<float>>(2 * kKeyRows * kHeads, Row<float>{{9}});

    explicit Call(std::string cache_mode) : mode(std::move(cache_mode)) {
        if (mode == "offset") table = {0, 16, 32};
        if (mode == "token_table") {
            for (std::int64_t t = 0; t < kKeyRows; ++t) table.push_back(t * 2);
        }
        if (mode == "page_table") table = {0, 4, -1, -1, 17, 25, -1, -1, 33, -1, -1, -1};
        if (mode == "block_table") table = {0, 1, -1, -1, 5, 6, -1, -1, 9, -1, -1, -1};
        if (mode == "sequence_table") table = {3, 0, 1};
        if (mode == "block_pointers")
            table = {address(0), address(1), 0, -1, address(5), address(6), 0, -1, address(9), 0, 0, 0};
    }

    bool paged() const { return mode == "page_table" || blocks() || pointers(); }
    bool blocks() const { return mode == "block_table"; }
    bool sequences() const { return mode == "sequence_table"; }
    bool pointers() const { return mode == "block_pointers"; }

    /// Of a block of 4 tokens; they lie in the cache's memory.
    std::int64_t address(std::int64_t block) const {
        return reinterpret_cast<std::intptr_t>(cache.data() + block * 2 * kPage * kHeads);
    }

    KernelSpec spec() const {
        const std::string layout = blocks() ? "N2LTHD" : pointers() ? "2LTHD" : sequences() ? "NL2THD" : "TL2HD";
        const std::string page = paged() ? ",page_size=" + std::to_string(kPage) : "";
        return *KernelSpec::parse("op=KeyValueCache,head_dim=16,t1=f32,cache_mode=" + mode + ",layout=" + layout +
                                  page);
    }

    Batch batch() {
        Batch batch;
        batch.batch_size = static_cast<std::int64_t>(seqstarts.size()) - 1;
        batch.num_kv_heads = kHeads;
        batch.max_tokens = blocks() || pointers() ? 0 : sequences() ? kLongest : kSlots;
        batch.num_blocks = blocks() ? kSlots / kPage : sequences() ? kSlots / kLongest : 0;
        batch.max_seqlen = max_seqlen;
        batch.max_kvlen = max_kvlen;
        batch.seqstarts = seqstarts.data();
        batch.kvstarts = kvstarts.data();
        batch.start_pos = start_pos.data();
        batch.rowstarts = rowstarts.empty() ? nullptr : rowstarts.data();
        batch.row_index = row_index.empty() ? nullptr : row_index.data();
        const auto entries = static_cast<std::int64_t>(table.size());
        batch.cachestarts = paged() && rowstarts.empty()
                                ? Tensor(table.data(), KVJIT_I64, {entries / kMaxPages, kMaxPages})
                                : Tensor(table.data(), KVJIT_I64, {entries});
        return batch;
    }

    /// The same without new keys.
    Tensors reads() {
        Tensors reads = tensors();
        reads.current_key = reads.current_value = Tensor();
        return reads;
    }

    Tensors tensors() {
        Tensors tensors;
        tensors.current_key = Tensor(tokens.data(), KVJIT_F32, {rows, kHeads, kDim});
        tensors.current_value = tensors.current_key;
        tensors.cache = blocks() ? Tensor(cache.data(), KVJIT_F32, {kSlots / kPage, 2, 1, kPage, kHeads, kDim})
                        : sequences()
                            ? Tensor(cache.data(), KVJIT_F32, {kSlots / kLongest, 1, 2, kLongest, kHeads, kDim})
                        : pointers() ? Tensor()
                                     : Tensor(cache.data(), KVJIT_F32, {kSlots, 1, 2, kHeads, kDim});
        tensors.key = Tensor(outputs.data(), KVJIT_F32, {key_rows, kHeads, kDim});
        tensors.value = Tensor(outputs.data() + kKeyRows * kHeads, KVJIT_F32, {key_rows, kHeads, kDim});
        return tensors;
    }
};

inline bool same_bytes(const std::vector<Row<float>>& rows, const std::vector<Row<float>>& others) {
    return std::memcmp(rows.data(), others.data(), rows.size() * sizeof rows[0]) == 0;
}

inline Result<void> run(Plan& plan, Call& call) {
    if (const Result<void> ran = plan.run(call.tensors()); !ran) return ran;
    return plan.synchronize();
}

inline Result<Plan> plan_of(Call& call, kvjit_check_level level = KVJIT_CHECK_FULL, int stores_nothing = 0) {
    const Kernel kernel = *engine().kernel(call.spec(), *Target::cuda_emulated());
    PlanOptions options;
    options.check_level = level;
    options.stores_nothing = stores_nothing;
    return kernel.plan(call.batch(), options);
}

struct Fault {
    const char* name;
    const char* mode;
    std::function<void(Call&)> spoil;
    kvjit_status status;
    const char* argument;
    std::int64_t value, sequence;
    bool of_stores = false;  // none where nothing is stored
};

inline const Fault kFaults[] = {
    {"first start", "offset", [](Call& c) { c.seqstarts[0] = 1; }, KVJIT_BAD_INDEX, "seqstarts", 1, 0},
    {"falling seqstarts", "offset", [](Call& c) { c.seqstarts[3] = 3; }, KVJIT_BAD_INDEX, "seqstarts", 3, 2},
    {"falling kvstarts", "page_table", [](Call& c) { c.kvstarts[2] = 5; }, KVJIT_BAD_INDEX, "kvstarts", 5, 1},
    {"fewer keys than new tokens", "offset", [](Call& c) { c.kvstarts = {0, 6, 8, 10}; }, KVJIT_BAD_INDEX, "kvstarts",
     8, 1, true},
    {"past too short", "offset", [](Call& c) { c.start_pos[1] = 3; }, KVJIT_BAD_INDEX, "start_pos", 3, 1, true},
    {"past below 0", "offset", [](Call& c) { c.start_pos[2] = -2; }, KVJIT_BAD_INDEX, "start_pos", -2, 2, true},
    {"max_seqlen", "offset", [](Call& c) { c.max_seqlen = 2; }, KVJIT_BAD_ARGUMENT, "max_seqlen", 2, 1},
    {"max_kvlen", "offset", [](Call& c) { c.max_kvlen = 6; }, KVJIT_BAD_ARGUMENT, "max_kvlen", 6, 1},
    {"too few rows", "offset", [](Call& c) { c.rows = 3; }, KVJIT_BAD_SHAPE, "seqstarts", 4, 1, true},
    {"too few key rows", "offset", [](Call& c) { c.key_rows = 14; }, KVJIT_BAD_SHAPE, "kvstarts", 15, 2},
    {"offset below 0", "offset", [](Call& c) { c.table[1] = -20; }, KVJIT_BAD_INDEX, "cachestarts", -20, 1},
    {"offset past the end", "offset", [](Call& c) { c.table[2] = kSlots - 1; }, KVJIT_BAD_INDEX, "cachestarts",
     kSlots - 1, 2},
    {"token past the end", "token_table", [](Call& c) { c.table[14] = kSlots; }, KVJIT_BAD_INDEX, "cachestarts", kSlots,
     2},
    {"page past the end", "page_table", [](Call& c) { c.table[4] = kSlots - 3; }, KVJIT_BAD_INDEX, "cachestarts",
     kSlots - 3, 1},
    {"huge page", "page_table", [](Call& c) { c.table[5] = std::int64_t{1} << 62; }, KVJIT_BAD_INDEX, "cachestarts",
     std::int64_t{1} << 62, 1},
    {"block past the end", "block_table", [](Call& c) { c.table[8] = kSlots / kPage; }, KVJIT_BAD_INDEX, "cachestarts",
     kSlots / kPage, 2},
    {"block below 0", "block_table", [](Call& c) { c.table[0] = -7; }, KVJIT_BAD_INDEX, "cachestarts", -7, 0},
    {"row longer than the table", "page_table",
     [](Call& c) {
         c.kvstarts = {0, 6, 23, 25};
         c.start_pos[1] = 14;
         c.key_rows = kKeyRows;
         c.kvstarts[3] = 24;
         c.start_pos[2] = 1;
     },
     KVJIT_BAD_INDEX, "kvstarts", 17, 1},
    {"row longer than its own entries", "page_table",
     [](Call& c) { c.table = {0, 4, 17, 25, 33}, c.rowstarts = {0, 1, 4, 5}; }, KVJIT_BAD_INDEX, "kvstarts", 6, 0},
    {"rowstarts that begin past 0", "page_table",
     [](Call& c) { c.table = {-1, 0, 4, 17, 25, 33}, c.rowstarts = {1, 3, 5, 6}; }, KVJIT_BAD_INDEX, "rowstarts", 1, 0},
    {"falling rowstarts", "page_table", [](Call& c) { c.table = {0, 4, 17, 25, 33}, c.rowstarts = {0, 3, 2, 5}; },
     KVJIT_BAD_INDEX, "rowstarts", 2, 1},
    {"row_index past the table", "page_table", [](Call& c) { c.row_index = {0, 3, 1}; }, KVJIT_BAD_INDEX, "row_index",
     3, 1},
    {"rowstarts past the table", "page_table", [](Call& c) { c.rowstarts = {0, 4, 13, 14}; }, KVJIT_BAD_INDEX,
     "rowstarts", 14, 2},
    {"sequence's block past the end", "sequence_table", [](Call& c) { c.table[2] = kSlots / kLongest; },
     KVJIT_BAD_INDEX, "cachestarts", kSlots / kLongest, 2},
    {"sequence's block below 0", "sequence_table", [](Call& c) { c.table[0] = -1; }, KVJIT_BAD_INDEX, "cachestarts", -1,
     0},
    {"sequence longer than its block", "sequence_table",
     [](Call& c) { c.kvstarts = {0, 6, 23, 24}, c.start_pos = {5, 14, 1}; }, KVJIT_BAD_INDEX, "kvstarts", 17, 1},
    {"one block for two sequences", "sequence_table",
     [](Call& c) { c.start_pos[0] = 5, c.kvstarts = {0, 6, 13, 15}, c.table[1] = 3; }, KVJIT_BAD_INDEX, "cachestarts",
     3, 1, true},
    {"no block at an address", "block_pointers", [](Call& c) { c.table[4] = 0; }, KVJIT_BAD_INDEX, "cachestarts", 0, 1},
    {"block at an address below 0", "block_pointers", [](Call& c) { c.table[8] = -16; }, KVJIT_BAD_INDEX, "cachestarts",
     -16, 2},
    {"row of blocks longer than the table", "block_pointers",
     [](Call& c) { c.kvstarts = {0, 6, 23, 24}, c.start_pos = {5, 14, 1}; }, KVJIT_BAD_INDEX, "kvstarts", 17, 1},
    {"two new tokens of one sequence", "token_table", [](Call& c) { c.table[11] = c.table[12]; }, KVJIT_BAD_INDEX,
     "cachestarts", 24, 1, true},
    {"new tokens of two sequences", "page_table", [](Call& c) { c.table[5] = 4; }, KVJIT_BAD_INDEX, "cachestarts", 5, 1,
     true},
};

inline void expect_found(const Fault& fault, Call& call, const Result<void>& ran) {
    REQUIRE(!ran.has_value());
    CHECK(ran.error().status() == fault.status);
    CHECK(std::string(ran.error().argument()) == fault.argument);
    CHECK(ran.error().value() == fault.value);
    CHECK(ran.error().sequence() == fault.sequence);
    CHECK(std::string(ran.error().message()).find(std::to_string(fault.value)) != std::string::npos);
    CHECK(same_bytes(call.cache, Call(fault.mode).cache));
    CHECK(same_bytes(call.outputs, Call(fault.mode).outputs));
}

}  // namespace kvjit::test
