#include "calls/arrays.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "oracle/elements.h"

namespace kvjit::calls {
namespace {

constexpr std::int64_t kRoom = 64, kAround = 1 << 13, kAlignment = 256;

Numbers sums(const Numbers& lengths) {
    Numbers starts{0};
    std::inclusive_scan(lengths.begin(), lengths.end(), std::back_inserter(starts));
    return starts;
}

/// 0 to count - 1.
Numbers places_of(std::int64_t count, Rng* rng) {
    Numbers places(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), 0);
    if (rng != nullptr) rng->shuffle(places);
    return places;
}

}  // namespace

kvjit_spec parse_spec(const std::string& text) {
    kvjit_spec spec;
    kvjit_error error;
    kvjit_error_init(&error);
    if (kvjit_spec_parse(text.c_str(), &spec, &error) != KVJIT_OK) throw std::runtime_error(error.message);
    return spec;
}

CallShape even_shape(const std::string& spec, std::int64_t sequences, std::int64_t tokens, std::int64_t keys) {
    const auto count = static_cast<std::size_t>(sequences);
    return {parse_spec(spec), Numbers(count, tokens), Numbers(count, keys)};
}

void BlockMemory::make(std::int64_t block_bytes, std::int64_t count) {
    bytes = block_bytes;
    memory.resize(static_cast<std::size_t>(std::max(kRoom, count) * bytes + 2 * kAround));
}

std::int64_t BlockMemory::address(std::int64_t block) const {
    const auto begin = reinterpret_cast<std::intptr_t>(memory.data()) + kAround / 2;
    return (begin + kAlignment - 1) / kAlignment * kAlignment + block * bytes;
}

/// Rounded so that blocks are aligned as they were; kAround is more than that.
std::int64_t BlockMemory::copy(const Place& place) const {
    if (memory.empty()) return 0;
    const auto there = reinterpret_cast<std::intptr_t>(place(memory.data(), memory.size()));
    return (there - reinterpret_cast<std::intptr_t>(memory.data())) / kAlignment * kAlignment;
}

IndexArrays::IndexArrays(const CallShape& shape) : spec(shape.spec) {
    kvjit_batch_init(&batch);
    batch.num_heads = shape.num_kv_heads * spec.group;
    batch.num_kv_heads = shape.num_kv_heads;
    batch.num_layers = shape.num_layers;
    set_lengths(shape.tokens, shape.keys);
    if (oracle::has_cache(spec)) place_tokens();
}

void IndexArrays::bind() {
    bind([](const void* data, std::size_t) { return data; });
}

void IndexArrays::bind(const Place& place) {
    narrow_.clear();
    const auto put = [&](const Numbers& numbers, int type) -> const void* {
        if (numbers.empty()) return nullptr;
        if (type == KVJIT_I64) return place(numbers.data(), numbers.size() * sizeof numbers[0]);
        const auto& narrow = narrow_.emplace_back(numbers.begin(), numbers.end());
        return place(narrow.data(), narrow.size() * sizeof narrow[0]);
    };
    const auto starts = [&](const Numbers& numbers) { return put(numbers, spec.starts_type); };
    batch.seqstarts = starts(seqstarts);
    batch.kvstarts = starts(kvstarts);
    batch.start_pos = starts(start_pos);
    batch.kvlens = starts(kvlens);
    batch.last_page_len = starts(last_page_len);
    batch.rowstarts = starts(rowstarts);
    batch.row_index = starts(row_index);
    batch.store_slots.data = const_cast<void*>(starts(store_slots));
    batch.cachestarts.data = const_cast<void*>(put(table, spec.index_type));
    batch.scalestarts.data = const_cast<void*>(put(scales, KVJIT_I64));
    batch.alibi_slopes = slopes.empty() ? nullptr : slopes.data();
}

void IndexArrays::move_blocks(const Place& place) {
    const auto move = [&](const BlockMemory& blocks, Numbers& entries) {
        const std::int64_t distance = blocks.copy(place);
        for (std::int64_t& entry : entries) entry += entry > 0 ? distance : 0;  // below 0: no block
    };
    move(code_blocks, table);
    move(scale_blocks, scales);
    bind();
}

void IndexArrays::set_lengths(const Numbers& tokens, const Numbers& keys) {
    batch.batch_size = std::ssize(tokens);
    seqstarts = sums(tokens);
    kvstarts = sums(keys);
    start_pos.clear();
    std::ranges::transform(keys, tokens, std::back_inserter(start_pos), std::minus<>());
    bind();
}

void IndexArrays::set_table(Numbers entries, const Numbers& shape) {
    table = std::move(entries);
    batch.cachestarts = dense_tensor(nullptr, spec.index_type, shape);
    bind();
}

void IndexArrays::set_scales(Numbers entries) {
    scales = std::move(entries);
    batch.scalestarts = batch.cachestarts;
    bind();
}

void IndexArrays::set_slots(Numbers slots, const Numbers& shape) {
    store_slots = std::move(slots);
    batch.store_slots = dense_tensor(nullptr, spec.starts_type, shape);
    bind();
}

std::int64_t IndexArrays::block_bytes(const oracle::RowType& row) const {
    const Numbers shape = oracle::cache_shape(spec, batch, spec.layout, row.elements);
    return std::reduce(shape.begin(), shape.end(), static_cast<std::int64_t>(oracle::bytes_of(row.dtype)),
                       std::multiplies<>());
}

void IndexArrays::place_tokens(Rng* rng, std::int64_t spare, std::int64_t unused) {
    const auto mode = static_cast<kvjit_cache_mode>(spec.cache_mode);
    const bool pointers = mode == KVJIT_BLOCK_POINTERS, rows = oracle::has_pages(spec);
    const bool numbered = mode == KVJIT_BLOCK_TABLE || mode == KVJIT_SEQUENCE_TABLE;
    std::int64_t longest = batch.max_kvlen;
    for (std::int64_t b = 0; b < batch.batch_size; ++b) longest = std::max(longest, keys(b));
    const std::int64_t place = rows ? spec.page_size : mode == KVJIT_TOKEN_TABLE ? 1 : longest;
    const std::int64_t columns = rows ? (longest + place - 1) / place : 1;
    const std::int64_t entries = mode == KVJIT_TOKEN_TABLE ? kvstarts.back() : batch.batch_size * columns;
    const std::int64_t count = entries + spare;
    batch.num_blocks = numbered ? count : 0;
    batch.max_tokens = mode == KVJIT_SEQUENCE_TABLE ? longest : numbered || pointers ? 0 : count * place;
    const auto table_of = [&](const auto& entry_of) {
        Numbers places = places_of(count, rng), all;
        for (std::int64_t i = 0; i < entries; ++i, places.pop_back()) {
            const bool used = !rows || i % columns * place < keys(i / columns);
            all.push_back(used ? entry_of(places.back()) : unused);
        }
        return all;
    };
    const Numbers shape = rows ? Numbers{batch.batch_size, columns} : Numbers{entries};
    if (!pointers) return set_table(table_of([&](std::int64_t at) { return numbered ? at : at * place; }), shape);
    code_blocks.make(block_bytes(oracle::code_row(spec)), count);
    set_table(table_of([&](std::int64_t at) { return code_blocks.address(at); }), shape);
    if (spec.quant_bit == 0) return;
    scale_blocks.make(block_bytes(oracle::scale_row(spec)), count);
    set_scales(table_of([&](std::int64_t at) { return scale_blocks.address(at); }));
}

std::int64_t IndexArrays::keys(std::int64_t b) const {
    const auto at = static_cast<std::size_t>(b);
    return kvstarts[at + 1] - kvstarts[at];
}

std::int64_t IndexArrays::tokens(std::int64_t b) const {
    const auto at = static_cast<std::size_t>(b);
    return seqstarts[at + 1] - seqstarts[at];
}

kvjit_tensor dense_tensor(const void* data, int dtype, const Numbers& shape) {
    const auto rank = static_cast<std::int32_t>(shape.size());
    return kvjit_tensor_contiguous(const_cast<void*>(data), static_cast<kvjit_dtype>(dtype), rank, shape.data());
}

}  // namespace kvjit::calls
