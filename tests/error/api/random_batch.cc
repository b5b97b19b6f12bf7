#include "random_batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace kvjit::test {
namespace {

constexpr std::int64_t kUnused = -77;

/// `count` different entries, in any order, whose tokens don't overlap.
std::vector<std::int64_t> distinct_entries(std::int64_t count, std::int64_t step, Rng& rng) {
    std::vector<std::int64_t> entries(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) entries[static_cast<std::size_t>(i)] = i * step;
    rng.shuffle(entries);
    return entries;
}

}  // namespace

RandomBatch::RandomBatch(std::string_view spec_text, Rng& rng) : BatchCase(spec_text) {
    draw_lengths(rng);
    draw_table(rng);
    if (rng.chance(0.5)) spoil(rng);
    bind();
    guard();
}

void RandomBatch::draw_lengths(Rng& rng) {
    batch.batch_size = rng.between(1, 5);
    batch.decoding_batches = 0;
    seqstarts = kvstarts = {0};
    start_pos.clear();
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        const std::int64_t n = rng.between(0, 6);
        start_pos.push_back(rng.between(0, 9));
        seqstarts.push_back(seqstarts.back() + n);
        kvstarts.push_back(kvstarts.back() + start_pos.back() + n);
    }
}

void RandomBatch::draw_table(Rng& rng) {
    const std::int64_t keys = kvstarts.back();
    if (spec.cache_mode == KVJIT_OFFSET) {
        constexpr std::int64_t kLongest = 15;
        batch.max_tokens = batch.batch_size * kLongest;
        set_table(distinct_entries(batch.batch_size, kLongest, rng), {batch.batch_size});
    } else if (spec.cache_mode == KVJIT_TOKEN_TABLE) {
        batch.max_tokens = keys + rng.between(0, 3);
        set_table(distinct_entries(keys, 1, rng), {keys});
    } else if (spec.cache_mode == KVJIT_SEQUENCE_TABLE) {
        batch.max_tokens = rng.between(12, 16);
        batch.num_blocks = batch.batch_size + rng.between(0, 2);
        set_table(distinct_entries(batch.batch_size, 1, rng), {batch.batch_size});
    } else if (spec.cache_mode == KVJIT_BLOCK_POINTERS) {
        draw_addresses(rng);
    } else {
        const bool blocks = spec.cache_mode == KVJIT_BLOCK_TABLE;
        const std::int64_t pages = keys / spec.page_size + batch.batch_size;
        batch.max_tokens = blocks ? 0 : pages * spec.page_size;
        batch.num_blocks = blocks ? pages : 0;
        draw_paged_table(rng, distinct_entries(pages, blocks ? 1 : spec.page_size, rng));
    }
}

/// Numbers of blocks, then the addresses of these; scales have another block's number.
void RandomBatch::draw_addresses(Rng& rng) {
    const std::int64_t pages = kvstarts.back() / spec.page_size + batch.batch_size;
    draw_paged_table(rng, distinct_entries(pages, 1, rng));
    const std::vector<std::int64_t> numbers = table, others = distinct_entries(pages, 1, rng);
    const auto place = [&](std::int64_t number) { return number == kUnused ? number : code_blocks.address(number); };
    std::ranges::transform(numbers, table.begin(), place);
    if (spec.quant_bit == 0) return;
    std::vector<std::int64_t> at(numbers.size(), kUnused);
    for (std::size_t i = 0; i < at.size(); ++i) {
        if (numbers[i] != kUnused) at[i] = scale_blocks.address(others[static_cast<std::size_t>(numbers[i])]);
    }
    set_scales(at);
}

void RandomBatch::draw_paged_table(Rng& rng, std::vector<std::int64_t> entries) {
    const bool csr = rng.chance(0.4);
    const std::int64_t columns = 15 / spec.page_size + rng.between(1, 2);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(batch.batch_size));
    std::iota(rows.begin(), rows.end(), 0);
    if (!csr && rng.chance(0.5)) rng.shuffle(row_index = rows);
    if (csr) rowstarts = {0};
    std::vector<std::int64_t> padded(csr ? 0 : static_cast<std::size_t>(batch.batch_size * columns), kUnused);
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        const std::int64_t m = kvstarts[b + 1] - kvstarts[b];
        const std::int64_t used = (m + spec.page_size - 1) / spec.page_size;
        const std::int64_t row = (row_index.empty() ? b : row_index[b]) * columns;
        for (std::int64_t p = 0; p < used; ++p, entries.pop_back()) {
            csr ? padded.push_back(entries.back()) : static_cast<void>(padded[row + p] = entries.back());
        }
        if (csr) rowstarts.push_back(std::ssize(padded));
    }
    const std::int64_t total = std::ssize(padded);
    set_table(padded, csr ? std::vector{total} : std::vector{batch.batch_size, columns});
}

void RandomBatch::spoil(Rng& rng) {
    std::vector<std::vector<std::int64_t>*> arrays{&seqstarts, &kvstarts,  &start_pos, &table,
                                                   &table,     &rowstarts, &row_index};
    const bool pointers = spec.cache_mode == KVJIT_BLOCK_POINTERS;
    if (pointers) arrays.insert(arrays.end(), {&scales, &scales});
    // Totals also say how much memory the arrays and tensors need; that they are too large is for shape checks to see.
    const std::vector<std::int64_t> nudges{-1000, -2, -1, 1, 2, 3};
    const std::vector<std::int64_t> steps{-64, -16, -8, 4, 16, 32, 1008};  // of addresses
    for (std::int64_t times = rng.between(1, 3); times > 0; --times) {
        std::vector<std::int64_t>& array = *rng.pick(arrays);
        const bool starts = &array == &seqstarts || &array == &kvstarts;
        const std::int64_t last = std::ssize(array) - (starts ? 1 : 0);
        if (last < 1) continue;
        std::int64_t& number = array[static_cast<std::size_t>(rng.below(last))];
        const bool address = pointers && (&array == &table || &array == &scales);
        number = rng.chance(0.3) ? rng.pick(array) : number + rng.pick(address ? steps : nudges);
        if (address && rng.chance(0.1)) number = 0;
    }
}

void RandomBatch::leave_out_start_pos() {
    batch.start_pos = nullptr;
    for (std::size_t b = 0; b < start_pos.size(); ++b) {
        start_pos[b] = kvstarts[b + 1] - kvstarts[b] - (seqstarts[b + 1] - seqstarts[b]);
    }
}

template <class T>
const T* RandomBatch::guarded(const std::vector<T>& values) {
    if (values.empty()) return nullptr;
    GuardedBuffer& buffer = buffers_.emplace_back(values.size() * sizeof(T), Guard::kAfter);
    std::memcpy(buffer.data(), values.data(), buffer.size());
    return reinterpret_cast<const T*>(buffer.data());
}

void RandomBatch::guard() {
    const auto starts = [&](const std::vector<std::int64_t>& values) -> const void* {
        if (spec.starts_type == KVJIT_I64) return guarded(values);
        return guarded(std::vector<std::int32_t>(values.begin(), values.end()));
    };
    batch.seqstarts = starts(seqstarts);
    batch.kvstarts = starts(kvstarts);
    batch.start_pos = starts(start_pos);
    batch.rowstarts = starts(rowstarts);
    batch.row_index = starts(row_index);
    const bool narrow_table = spec.index_type == KVJIT_I32;
    batch.cachestarts.data = narrow_table ? const_cast<std::int32_t*>(guarded(table32))
                                          : static_cast<void*>(const_cast<std::int64_t*>(guarded(table)));
    if (!scales.empty()) batch.scalestarts.data = const_cast<std::int64_t*>(guarded(scales));
}

}  // namespace kvjit::test
