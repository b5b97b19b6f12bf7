#include "conformance/call.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "conformance/batch_shape.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

std::size_t u(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

/// Makes one call's tensors. `data` decides values, `place` decides addresses.
class Maker {
public:
    Maker(const Case& which, std::uint64_t data_seed, std::uint64_t placement_seed)
        : data_(data_seed), place_(placement_seed) {
        call_.which = which;
    }

    Call make() {
        call_.problem = shape_problem(call_.which, data_);
        hide_columns();
        make_queries();
        if (spec().op == KVJIT_OP_MULTI_HEAD_ATTENTION)
            make_dense();
        else
            make_cache();
        make_indices();
        call_.remember();
        return std::move(call_);
    }

private:
    const kvjit_spec& spec() const { return call_.which.spec; }
    std::int64_t new_tokens() const { return call_.problem.seqstarts.back(); }
    std::int64_t kv_tokens() const { return call_.problem.kvstarts.back(); }

    Placed tensor(int dtype, std::vector<std::int64_t> shape) {
        auto strides = spread_strides(shape, call_.which.spread, place_);
        return {dtype, std::move(shape), std::move(strides), call_.which.guard};
    }

    /// The cache's axes are ordered by the layout: gaps between them, but no other order.
    Placed layout_tensor(int dtype, std::vector<std::int64_t> shape) {
        const Spread spread = call_.which.spread == Spread::kDense ? Spread::kDense : Spread::kPadded;
        auto strides = spread_strides(shape, spread, place_);
        return {dtype, std::move(shape), std::move(strides), call_.which.guard};
    }

    Placed inputs(std::int64_t heads) {
        // More rows than seqstarts[B] are legal and never looked at: they stay NaN.
        const std::int64_t extra = call_.which.spread == Spread::kDense ? 0 : 2;
        Placed placed = tensor(spec().t1, {new_tokens() + extra, heads, spec().head_dim});
        for (std::int64_t t = 0; t < new_tokens(); ++t) {
            for (std::int64_t h = 0; h < heads; ++h) fill_row(placed, placed.strided().index(t, h, 0));
        }
        return placed;
    }

    /// One head's D numbers. Without attention behind it, rows of all magnitudes try the quantisation.
    void fill_row(Placed& placed, std::int64_t at) {
        static const std::vector<double> magnitudes = {1, 1, 1, 1e-7, 1e-3, 300, 0};
        const bool wild = spec().op == KVJIT_OP_KEY_VALUE_CACHE && spec().t1 != KVJIT_I8;
        const double magnitude = wild ? data_.pick(magnitudes) : 1;
        for (std::int64_t d = 0; d < spec().head_dim; ++d) placed.set(at + d, number_of(spec().t1) * magnitude);
    }

    double number_of(int dtype) {
        return dtype == KVJIT_I8 ? static_cast<double>(data_.between(-128, 127)) : data_.normal();
    }

    /// Some keys are hidden from every row by the mask: they may be NaN, and so may their values.
    void hide_columns() {
        hidden_.assign(u(kv_tokens()), false);
        for (std::int64_t column = 0; spec().attn_mask != 0 && column < kv_tokens(); ++column) {
            hidden_[u(column)] = data_.chance(0.1);
        }
    }

    void make_queries() {
        if (spec().op == KVJIT_OP_KEY_VALUE_CACHE) return;
        const std::int64_t heads = call_.problem.num_heads;
        call_.query = inputs(heads);
        call_.attn_output = tensor(spec().t1, {new_tokens(), heads, spec().head_dim});
        if (call_.which.outputs_whole) call_.lse = tensor(KVJIT_F32, {new_tokens(), heads});
        make_mask();
        make_sinks();
    }

    void make_mask() {
        if (spec().attn_mask == 0) return;
        const std::int64_t width = kv_tokens() + (call_.which.spread == Spread::kDense ? 0 : 5);
        const std::int64_t planes = spec().attn_mask == 3 ? call_.problem.num_heads : 1;
        std::vector<std::int64_t> shape = {planes, new_tokens(), width};
        if (spec().attn_mask == 2) shape.erase(shape.begin());
        call_.mask = tensor(spec().t1, shape);
        for (std::int64_t h = 0; h < planes; ++h) {
            for (std::int64_t b = 0; b < call_.problem.batch_size(); ++b) fill_mask(h, b);
        }
    }

    /// The part of the mask that rows of sequence b read; the rest stays NaN.
    void fill_mask(std::int64_t h, std::int64_t b) {
        const Problem& problem = call_.problem;
        const Strided& mask = call_.mask.strided();
        for (std::int64_t i = 0; i < problem.new_tokens(b); ++i) {
            for (std::int64_t j = 0; j < problem.kv_tokens(b); ++j) {
                if (!in_sight(problem, b, i, j)) continue;
                const std::int64_t row = problem.seqstarts[u(b)] + i;
                const std::int64_t column = problem.kvstarts[u(b)] + j;
                const double bias = hidden_[u(column)] || data_.chance(0.05) ? kHidden : data_.normal();
                call_.mask.set(spec().attn_mask == 3 ? mask.index(h, row, column) : mask.index(row, column), bias);
            }
        }
    }

    void make_sinks() {
        if (!spec().has_sinks) return;
        call_.sinks = Placed(KVJIT_F32, {call_.problem.num_heads}, {1}, call_.which.guard);
        for (std::int64_t h = 0; h < call_.problem.num_heads; ++h) {
            call_.sinks.set(h, static_cast<double>(call_.problem.sinks[u(h)]));
        }
    }

    void make_dense() {
        for (Placed* each : {&call_.key, &call_.value}) {
            *each = tensor(spec().t1, {kv_tokens(), call_.problem.num_kv_heads, spec().head_dim});
            for (std::int64_t t = 0; t < kv_tokens(); ++t) {
                for (std::int64_t h = 0; h < call_.problem.num_kv_heads && !hidden_[u(t)]; ++h) {
                    fill_row(*each, each->strided().index(t, h, 0));
                }
            }
        }
    }

    void make_cache() {
        if (call_.which.stores == Stores::kYes) {
            call_.current_key = inputs(call_.problem.num_kv_heads);
            call_.current_value = inputs(call_.problem.num_kv_heads);
        }
        const Placement placement = place_tokens(call_.which, call_.problem, place_);
        call_.max_tokens = placement.max_tokens;
        call_.num_blocks = placement.num_blocks;
        call_.cache = cache_tensors(placement, code_row(spec()));
        if (spec().quant_bit != 0) call_.scale = cache_tensors(placement, scale_row(spec()));
        make_tables(placement);
        codes_ = memory_of(call_.cache), scales_ = memory_of(call_.scale);
        for (std::int64_t b = 0; b < call_.problem.batch_size(); ++b) fill_past(b);
        if (spec().op == KVJIT_OP_KEY_VALUE_CACHE) make_loaded();
    }

    void make_loaded() {
        if (call_.which.keys_by != KeysBy::kStarts) return;  // nothing says where a sequence's rows begin
        const std::int64_t heads = call_.problem.num_kv_heads * call_.problem.num_repeat;
        call_.key = tensor(spec().t1, {kv_tokens(), heads, spec().head_dim});
        if (call_.which.outputs_whole) call_.value = tensor(spec().t1, {kv_tokens(), heads, spec().head_dim});
    }

    /// As CacheMemory has them.
    std::vector<Placed> cache_tensors(const Placement& placement, const RowType& row) {
        kvjit_batch extents{};
        extents.max_tokens = placement.max_tokens;
        extents.num_blocks = placement.num_blocks;
        extents.num_layers = call_.problem.num_layers;
        extents.num_kv_heads = call_.problem.num_kv_heads;
        const auto shape = cache_shape(spec(), extents, spec().layout, row.elements);
        std::vector<Placed> tensors;
        if (spec().cache_mode == KVJIT_BLOCK_POINTERS) {
            for (std::int64_t block = 0; block < placement.num_blocks; ++block)
                tensors.emplace_back(row.dtype, shape, spread_strides(shape, Spread::kDense, place_),
                                     call_.which.guard);
            return tensors;
        }
        tensors.push_back(layout_tensor(row.dtype, shape));
        if (is_apart(spec()))
            tensors.push_back(
                layout_tensor(row.dtype, cache_shape(spec(), extents, value_layout(spec()), row.elements)));
        return tensors;
    }

    void make_tables(const Placement& placement) {
        std::vector<std::int64_t> shape = placement.table_shape;
        if (call_.which.layer_tables) shape.insert(shape.begin(), call_.problem.num_layers);
        call_.cachestarts = tensor(spec().index_type, shape);
        fill_tables(call_.cachestarts, call_.cache);
        if (spec().cache_mode != KVJIT_BLOCK_POINTERS || spec().quant_bit == 0) return;
        call_.scalestarts = Placed(KVJIT_I64, shape, call_.cachestarts.strided().strides, call_.which.guard);
        fill_tables(call_.scalestarts, call_.scale);
    }

    /// The layer's own table, and those of others, which send everything one slot or block further.
    void fill_tables(Placed& table, const std::vector<Placed>& blocks) {
        const std::vector<std::int64_t> entries = entries_in_sight(call_.problem);
        const std::int64_t layers = call_.which.layer_tables ? call_.problem.num_layers : 1;
        std::vector<std::int64_t> all;
        for (std::int64_t layer = 0; layer < layers; ++layer) {
            const std::int64_t further = layers == 1 || layer == call_.problem.layer ? 0 : 1;
            for (const std::int64_t entry : entries) all.push_back(entry < 0 ? entry : entry + further);
        }
        fill_table(table, blocks, all);
    }

    /// Entries; where they are addresses, those of the blocks that the problem has numbers of: a double holds them.
    void fill_table(Placed& table, const std::vector<Placed>& blocks, const std::vector<std::int64_t>& entries) {
        auto next = entries.begin();
        table.fill([&] {
            std::int64_t entry = *next++;
            if (spec().cache_mode == KVJIT_BLOCK_POINTERS && entry >= 0)
                entry = reinterpret_cast<std::intptr_t>(blocks[u(entry)].strided().data);
            return static_cast<double>(entry);
        });
    }

    /// What earlier calls stored: everything before the new tokens, or all if this call stores nothing.
    void fill_past(std::int64_t b) {
        for (std::int64_t t = 0; t < call_.problem.kv_tokens(b); ++t) {
            if (is_stored(b, t)) continue;
            const bool hidden = hidden_[u(call_.problem.kvstarts[u(b)] + t)] || t < first_in_sight(call_.problem, b);
            for (std::int64_t h = 0; h < call_.problem.num_kv_heads && !hidden; ++h) {
                for (const int key_or_value : {0, 1}) fill_slot(slot_of(call_.problem, b, t), key_or_value, h);
            }
        }
    }

    /// Whether the call stores position t of sequence b.
    bool is_stored(std::int64_t b, std::int64_t t) const {
        if (call_.which.stores != Stores::kYes) return false;
        const std::int64_t i = t - call_.problem.start_pos[u(b)];
        return i >= 0 && place_of_new(call_.problem, b, i).has_value();
    }

    void fill_slot(Slot slot, int key_or_value, std::int64_t h) {
        const CacheRow codes = cache_row(call_.problem, codes_, key_or_value, slot, h);
        const std::int64_t elements = code_row(spec()).elements;
        for (std::int64_t d = 0; d < elements; ++d) write_element(codes.at(d), codes.dtype, 0, stored_number());
        if (spec().quant_bit == 0) return;
        const CacheRow scales = cache_row(call_.problem, scales_, key_or_value, slot, h);
        const double unit = spec().quant_bit == 8 ? 3.0 / 127 : 3.0 / 7;
        for (std::int64_t group = 0; group < spec().head_dim / spec().quant_group; ++group) {
            write_element(scales.at(group), scales.dtype, 0, unit * (0.2 + data_.uniform()));
        }
    }

    double stored_number() {
        if (spec().quant_bit == 8) return static_cast<double>(data_.between(-127, 127));
        if (spec().quant_bit == 4) {
            const std::int64_t low = data_.between(-7, 7) & 15;
            return static_cast<double>(low + 16 * (data_.between(-7, 7) & 15));
        }
        return number_of(code_row(spec()).dtype);
    }

    void make_indices() {
        const Guard guard = call_.which.guard;
        call_.seqstarts = Placed::integers(call_.problem.seqstarts, spec().starts_type, guard);
        make_key_counts();
        make_store_slots();
        if (!call_.problem.start_pos.empty()) {
            call_.start_pos = Placed::integers(call_.problem.start_pos, spec().starts_type, guard);
        }
        if (!call_.problem.rowstarts.empty()) {
            call_.rowstarts = Placed::integers(call_.problem.rowstarts, spec().starts_type, guard);
        }
        if (!call_.problem.row_index.empty()) {
            call_.row_index = Placed::integers(call_.problem.row_index, spec().starts_type, guard);
        }
    }

    void make_key_counts() {
        const Problem& problem = call_.problem;
        std::vector<std::int64_t> lens, last;
        for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
            lens.push_back(problem.kv_tokens(b));
            const std::int64_t ignored = b % 2 == 0 ? -1 : 1 << 20;  // of a sequence without pages
            last.push_back(lens.back() == 0 ? ignored : (lens.back() - 1) % spec().page_size + 1);
        }
        const auto place = [&](const std::vector<std::int64_t>& numbers) {
            return Placed::integers(numbers, spec().starts_type, call_.which.guard);
        };
        if (call_.which.keys_by == KeysBy::kStarts) call_.kvstarts = place(problem.kvstarts);
        if (call_.which.keys_by == KeysBy::kLens) call_.kvlens = place(lens);
        if (call_.which.keys_by == KeysBy::kLastPage) call_.last_page_len = place(last);
    }

    /// Other layers send new tokens elsewhere: to the same slots in the other order.
    void make_store_slots() {
        const std::vector<std::int64_t>& slots = call_.problem.store_slots;
        if (call_.which.slots_by == SlotsBy::kTable) return;
        const bool by_layer = call_.which.slots_by == SlotsBy::kChosenByLayer;
        const std::int64_t layers = by_layer ? call_.problem.num_layers : 1;
        std::vector<std::int64_t> all, shape = {static_cast<std::int64_t>(slots.size())};
        if (by_layer) shape.insert(shape.begin(), layers);
        for (std::int64_t layer = 0; layer < layers; ++layer) {
            const bool own = !by_layer || layer == call_.problem.layer;
            own ? all.insert(all.end(), slots.begin(), slots.end())
                : all.insert(all.end(), slots.rbegin(), slots.rend());
        }
        call_.store_slots = tensor(spec().starts_type, shape);
        auto next = all.begin();
        call_.store_slots.fill([&] { return static_cast<double>(*next++); });
    }

    Call call_;
    CacheMemory codes_, scales_;  // of the call's cache
    std::vector<bool> hidden_;    // by column of the mask
    Rng data_;
    Rng place_;
};

}  // namespace

std::vector<const Placed*> Call::caches() const {
    std::vector<const Placed*> all;
    for (const std::vector<Placed>* tensors : {&cache, &scale}) {
        for (const Placed& each : *tensors) all.push_back(&each);
    }
    return all;
}

CacheMemory memory_of(const std::vector<Placed>& tensors) {
    std::vector<Strided> all;
    for (const Placed& each : tensors) all.push_back(each.strided());
    return CacheMemory(std::move(all));
}

std::vector<const Placed*> Call::inputs() const {
    std::vector<const Placed*> all = {&seqstarts, &kvstarts, &start_pos, &cachestarts, &scalestarts, &rowstarts,
                                      &row_index, &query,    &mask,      &sinks,       &current_key, &current_value};
    if (which.spec.op == KVJIT_OP_MULTI_HEAD_ATTENTION) all.insert(all.end(), {&key, &value});
    if (which.stores != Stores::kYes) std::ranges::copy(caches(), std::back_inserter(all));
    std::erase_if(all, [](const Placed* each) { return !each->present(); });
    return all;
}

std::vector<const Placed*> Call::outputs() const {
    std::vector<const Placed*> all = {&attn_output, &lse};
    if (which.spec.op == KVJIT_OP_KEY_VALUE_CACHE) all.insert(all.end(), {&key, &value});
    std::erase_if(all, [](const Placed* each) { return !each->present(); });
    return all;
}

void Call::remember() {
    for (Placed* each : {&seqstarts, &kvstarts, &start_pos, &cachestarts, &scalestarts, &rowstarts, &row_index, &query,
                         &kvlens, &last_page_len, &store_slots, &current_key, &current_value, &mask, &sinks, &key,
                         &value, &attn_output, &lse}) {
        each->remember();
    }
    for (std::vector<Placed>* tensors : {&cache, &scale}) {
        for (Placed& each : *tensors) each.remember();
    }
}

Call make_call(const Case& which, std::uint64_t data_seed, std::uint64_t placement_seed) {
    return Maker(which, data_seed, placement_seed).make();
}

}  // namespace kvjit::test
