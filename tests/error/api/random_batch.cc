#include "random_batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace kvjit::test {
namespace {

constexpr std::int64_t kUnused = -77, kLongest = 15;

}  // namespace

RandomBatch::RandomBatch(std::string_view spec_text, Rng& rng) : BatchCase(spec_text) {
    draw_lengths(rng);
    draw_table(rng);
    if (rng.chance(0.5)) spoil(rng);
    guard();
}

void RandomBatch::draw_lengths(Rng& rng) {
    Numbers tokens, keys;
    for (std::int64_t b = rng.between(1, 5); b > 0; --b) {
        tokens.push_back(rng.between(0, 6));
        keys.push_back(tokens.back() + rng.between(0, 9));
    }
    set_lengths(tokens, keys);
}

void RandomBatch::draw_table(Rng& rng) {
    batch.max_kvlen = kLongest + (has_pages(spec) ? rng.below(2) * spec.page_size : 0);  // for rows' width alone
    place_tokens(&rng, rng.between(0, 2), kUnused);
    batch.max_kvlen = 0;
    if (spec.cache_mode == KVJIT_SEQUENCE_TABLE) batch.max_tokens = rng.between(12, 16);
    if (batch.cachestarts.rank != 2 || rng.chance(0.3)) return;
    rng.chance(0.5) ? make_csr() : shuffle_rows(rng);
}

/// Gives the tables of codes and of scales another form.
template <class Form>
void RandomBatch::form_tables(const Numbers& shape, Form form) {
    set_table(form(table), shape);
    if (!scales.empty()) set_scales(form(scales));
}

/// Rows one after the other, as long as their keys need.
void RandomBatch::make_csr() {
    const std::int64_t columns = batch.cachestarts.shape[1];
    rowstarts = {0};
    for (std::int64_t b = 0; b < batch.batch_size; ++b)
        rowstarts.push_back(rowstarts.back() + (keys(b) + spec.page_size - 1) / spec.page_size);
    form_tables({rowstarts.back()}, [&](const Numbers& padded) {
        Numbers packed;
        for (std::int64_t b = 0; b < batch.batch_size; ++b) {
            const auto row = padded.begin() + b * columns;
            packed.insert(packed.end(), row, row + rowstarts[b + 1] - rowstarts[b]);
        }
        return packed;
    });
}

void RandomBatch::shuffle_rows(Rng& rng) {
    const std::int64_t columns = batch.cachestarts.shape[1];
    row_index.resize(static_cast<std::size_t>(batch.batch_size));
    std::iota(row_index.begin(), row_index.end(), 0);
    rng.shuffle(row_index);
    form_tables({batch.batch_size, columns}, [&](const Numbers& in_order) {
        Numbers shuffled = in_order;
        for (std::int64_t b = 0; b < batch.batch_size; ++b)
            std::copy_n(in_order.begin() + b * columns, columns, shuffled.begin() + row_index[b] * columns);
        return shuffled;
    });
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

void RandomBatch::guard() {
    bind([this](const void* data, std::size_t bytes) {
        GuardedBuffer& buffer = buffers_.emplace_back(bytes, Guard::kAfter);
        std::memcpy(buffer.data(), data, bytes);
        return buffer.data();
    });
}

}  // namespace kvjit::test
