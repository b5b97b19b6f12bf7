#include "cache_call.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "numbers.h"

namespace kvjit::test {
namespace {

using abi::i64;

Grid make_grid(i64 rows, i64 columns, i64 row_bytes, i64 gap, bool columns_inner) {
    Grid grid{rows, columns, 0, 0, row_bytes};
    i64& inner = columns_inner ? grid.column_stride : grid.row_stride;
    i64& outer = columns_inner ? grid.row_stride : grid.column_stride;
    inner = row_bytes + gap;
    outer = inner * (columns_inner ? columns : rows) + gap;
    return grid;
}

/// A quiet NaN of any sign and payload: what is made of it must not depend on them.
float some_nan(Rng& rng) {
    const auto bits = static_cast<std::uint32_t>(0x7fc00000 + rng.below(0x400000));
    return std::bit_cast<float>(rng.chance(0.5) ? bits : bits | 0x80000000U);
}

float random_value(Rng& rng) {
    const double kind = rng.uniform();
    if (kind < 0.02) return 0;
    if (kind < 0.04) return static_cast<float>(rng.normal() * 1e-6);
    if (kind < 0.06) return static_cast<float>(rng.normal() * 2e4);
    if (kind < 0.07) return static_cast<float>(rng.normal() * 1e37);
    return static_cast<float>(rng.normal());
}

}  // namespace

CacheCall::CacheCall(const CachePrograms& cache_programs, std::uint64_t seed) : programs(cache_programs), rng(seed) {
    guard_ = rng.chance(0.5) ? Guard::kAfter : Guard::kBefore;
    make_sequences();
    make_pages();
    make_tensors();
}

void CacheCall::make_sequences() {
    heads = rng.between(1, 5);
    num_repeat = rng.between(1, 3);
    seqstarts = kvstarts = {0};
    for (i64 b = rng.between(1, 4); b > 0; --b) {
        const Sequence sequence{rng.chance(0.3) ? 0 : rng.below(40), rng.chance(0.2) ? 0 : rng.below(30)};
        sequences.push_back(sequence);
        start_pos.push_back(sequence.start);
        seqstarts.push_back(seqstarts.back() + sequence.count);
        kvstarts.push_back(kvstarts.back() + sequence.end());
    }
}

/// Physical pages in random order. Where a sequence is one page, the table holds that page's first token.
void CacheCall::make_pages() {
    const i64 page = programs.page_size ? programs.page_size : 80;
    i64 pages = 0;
    for (const Sequence& s : sequences) pages += s.end() / page + 1;
    std::vector<i64> order(static_cast<std::size_t>(pages));
    std::iota(order.begin(), order.end(), 0);
    rng.shuffle(order);
    slot_count_ = pages * page;

    std::vector<std::vector<i64>> rows(sequences.size());
    slots.resize(sequences.size());
    for (std::size_t b = 0; b < sequences.size(); ++b) {
        for (i64 t = 0; t < sequences[b].end(); ++t) {
            if (t % page == 0) {
                rows[b].push_back(programs.page_size ? order.back() : order.back() * page);
                order.pop_back();
            }
            slots[b].push_back(rows[b].back() * (programs.page_size ? page : 1) + t % page);
        }
    }
    // A sequence without tokens still has its entry where each has one; nobody may follow it.
    if (programs.page_size == 0)
        for (auto& row : rows)
            if (row.empty()) row.push_back(-1);
    make_table(rows);
}

/// CSR, or padded rows, these in their own order or behind a row index. Padding must never be read as an entry.
void CacheCall::make_table(const std::vector<std::vector<i64>>& rows) {
    csr_ = rng.chance(0.4);
    row_stride_ = 1;
    for (const auto& row : rows) row_stride_ = std::max(row_stride_, static_cast<i64>(row.size()));
    std::vector<i64> order(rows.size());
    std::iota(order.begin(), order.end(), 0);
    if (!csr_ && rng.chance(0.5)) {
        rng.shuffle(order);
        row_index_.resize(rows.size());
        for (std::size_t k = 0; k < order.size(); ++k) row_index_[order[k]] = static_cast<i64>(k);
    }
    std::vector<i64> flat;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        if (!csr_) flat.resize(k * static_cast<std::size_t>(row_stride_), -1);
        rowstarts_.push_back(static_cast<i64>(flat.size()));
        flat.insert(flat.end(), rows[order[k]].begin(), rows[order[k]].end());
    }
    const auto bytes = static_cast<std::size_t>(programs.index_bytes);
    entries_ = GuardedBuffer(flat.size() * bytes, guard_);
    for (std::size_t i = 0; i < flat.size(); ++i) std::memcpy(entries_.data() + i * bytes, &flat[i], bytes);
}

/// A row with ties, zeros, extremes and now and then a NaN or an infinity.
void CacheCall::fill_input(std::byte* row) {
    const float largest = programs.quant_bit == 4 ? 7 : 127;
    const bool ties = rng.chance(0.4);
    const auto size = static_cast<float>(rng.chance(0.2) ? std::pow(10, -6 * rng.uniform()) : 1);  // near the floor
    for (i64 i = 0; i < programs.head_dim; ++i) {
        if (programs.t1 == Type::kI8) {
            row[i] = static_cast<std::byte>(rng.below(256));
            continue;
        }
        float value = size * random_value(rng);
        // With a scale of 1/32 each of these quotients is a code or lies in the middle between two.
        if (ties) value = i % 4 == 0 ? largest / 32 : static_cast<float>(rng.between(-254, 254)) / 64 * largest / 127;
        if (rng.chance(0.0005)) value = rng.chance(0.5) ? some_nan(rng) : -kInf;
        put(row, programs.t1, i, value);
    }
}

void CacheCall::make_tensors() {
    const bool gaps = rng.chance(0.5);
    const auto make = [&](Pair& pair, Type type, i64 rows, i64 columns, i64 elements, bool columns_inner) {
        const i64 gap = gaps ? bytes_of(type, 2 * rng.below(6)) : 0;
        pair.grid = make_grid(rows, columns, bytes_of(type, elements), gap, columns_inner);
        for (GuardedBuffer& buffer : pair.buffer) {
            buffer = GuardedBuffer(static_cast<std::size_t>(pair.grid.bytes()), guard_);
            for (std::byte& byte : buffer.bytes()) byte = static_cast<std::byte>(rng.next());
        }
    };
    const CachePrograms& p = programs;
    make(cache, p.t2, slot_count_, heads, p.head_dim, p.head_inner);
    make(scale, p.t3, p.quant_bit ? slot_count_ : 0, heads, p.head_dim / p.quant_group, p.head_inner);
    make(input, p.t1, seqstarts.back(), heads, p.head_dim, true);
    make(output, p.t1, kvstarts.back(), heads * num_repeat, p.head_dim, true);
    for (int kv = 0; kv < 2; ++kv)
        for (i64 row = 0; row < input.grid.rows; ++row)
            for (i64 h = 0; h < heads; ++h) fill_input(input.row(kv, row, h));
}

abi::Cache CacheCall::planes() {
    const auto plane = [&](Pair& pair, int kv) {
        const abi::Rows rows = pair.rows(kv);
        const i64 tokens = programs.page_size ? programs.page_size : 1;
        return abi::Plane{rows.base, rows.token_stride * tokens, rows.token_stride, rows.head_stride};
    };
    return {plane(cache, 0), plane(cache, 1), plane(scale, 0), plane(scale, 1)};
}

abi::Table CacheCall::table() const {
    return {.entries = entries_.data(),
            .scales = nullptr,
            .rowstarts = {csr_ ? rowstarts_.data() : nullptr, false},
            .row_index = {row_index_.empty() ? nullptr : row_index_.data(), false},
            .row_stride = row_stride_};
}

void CacheCall::for_each_item(bool new_tokens, const std::function<void(const abi::TokenItem&)>& f) {
    for (std::size_t b = 0; b < sequences.size(); ++b) {
        const i64 count = new_tokens ? sequences[b].count : sequences[b].end();
        const i64 token = rng.below(count + 1);
        const i64 head = rng.below(heads + 1);
        for (const auto& [t0, t1] : {std::pair{i64{0}, token}, {token, count}})
            for (const auto& [h0, h1] : {std::pair{i64{0}, head}, {head, heads}})
                f({static_cast<i64>(b), t0, t1, h0, h1});
    }
}

}  // namespace kvjit::test
