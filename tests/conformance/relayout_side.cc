#include "conformance/relayout_side.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "conformance/options.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kUnused = -1;  // an entry that no token needs
constexpr std::int64_t kGpuAlignment = 16;

std::size_t u(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

/// Entries are blocks, not tokens.
bool has_blocks(const kvjit_spec& spec) {
    return spec.cache_mode == KVJIT_BLOCK_TABLE || spec.cache_mode == KVJIT_BLOCK_POINTERS ||
           spec.cache_mode == KVJIT_SEQUENCE_TABLE;
}

bool has_axis(const kvjit_spec& spec, char axis) {
    return std::string_view(spec.layout).find(axis) != std::string_view::npos;
}

/// Positions that an entry stands for.
std::int64_t page_of(const kvjit_spec& spec) {
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) return 1;
    return has_pages(spec) ? spec.page_size : std::numeric_limits<std::int64_t>::max();
}

std::int64_t pages_of(const kvjit_spec& spec, const Sequence& sequence) {
    if (!has_pages(spec) && spec.cache_mode != KVJIT_TOKEN_TABLE) return 1;
    return (sequence.keys() + page_of(spec) - 1) / page_of(spec);
}

/// Numbers that an entry of the sequence takes up.
std::int64_t entry_length(const kvjit_spec& spec, const Sequence& sequence) {
    if (spec.cache_mode == KVJIT_OFFSET) return sequence.keys();
    return spec.cache_mode == KVJIT_PAGE_TABLE ? spec.page_size : 1;
}

/// One layer's, from number `begin` on; returns the first number past them.
std::int64_t scatter_layer(const kvjit_spec& spec, const std::vector<Sequence>& sequences, std::int64_t begin,
                           std::vector<std::vector<std::int64_t>>& rows, Rng& rng) {
    struct Page {
        std::size_t sequence, page;
    };
    std::vector<Page> pages;
    rows.resize(sequences.size());
    for (std::size_t b = 0; b < sequences.size(); ++b) {
        rows[b].resize(u(pages_of(spec, sequences[b])));
        for (std::size_t page = 0; page < rows[b].size(); ++page) pages.push_back({b, page});
    }
    // As often in order, so that what follows one another can be copied at once.
    if (rng.chance(0.6)) rng.shuffle(pages);
    const bool gaps = rng.chance(0.6);
    for (const Page& page : pages) {
        begin += gaps ? rng.below(3) : 0;
        rows[page.sequence][page.page] = begin;
        begin += entry_length(spec, sequences[page.sequence]);
    }
    return begin;
}

/// Some pages become another sequence's, or its own.
void share(const kvjit_spec& spec, const std::vector<Sequence>& sequences, Entries& entries, Rng& rng) {
    for (auto& rows : entries.of) {
        for (std::size_t b = 0; b < rows.size(); ++b) {
            for (std::int64_t& entry : rows[b]) {
                const auto& other = rng.pick(rows);
                if (rng.chance(0.4) && !other.empty()) entry = rng.pick(other);
                if (spec.cache_mode == KVJIT_OFFSET) entry = std::min(entry, entries.end - sequences[b].keys());
            }
        }
    }
}

/// Strides of `shape` with the axis of parts outermost.
std::vector<std::int64_t> halves(const std::vector<std::int64_t>& shape, std::size_t parts, Spread spread, Rng& rng) {
    std::vector<std::int64_t> turned = shape;
    turned.erase(turned.begin() + static_cast<std::ptrdiff_t>(parts));
    turned.insert(turned.begin(), 2);
    std::vector<std::int64_t> strides = spread_strides(turned, spread, rng);
    const std::int64_t way = strides.front();
    strides.erase(strides.begin());
    strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(parts), way);
    return strides;
}

template <class Number>
std::vector<Number> sums(const std::vector<Number>& numbers) {
    std::vector<Number> all = {0};
    std::partial_sum(numbers.begin(), numbers.end(), std::back_inserter(all));
    return all;
}

}  // namespace

Entries Entries::part(std::size_t first, std::size_t count) const {
    Entries some{{}, end, longest};
    for (const auto& rows : of) {
        const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
        some.of.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    return some;
}

Entries scatter(const SideCase& which, const std::vector<Sequence>& sequences, Rng& rng) {
    Entries entries;
    entries.of.resize(which.layer_tables ? u(which.num_layers) : 1);
    const bool one_plane = !has_axis(which.spec, 'L');  // in which the tables of all layers must find their places
    for (auto& rows : entries.of) {
        const std::int64_t begin = one_plane ? entries.end : 0;
        entries.end = std::max(entries.end, scatter_layer(which.spec, sequences, begin, rows, rng));
    }
    entries.end += rng.below(3);
    if (which.shares) share(which.spec, sequences, entries, rng);
    for (const Sequence& sequence : sequences) entries.longest = std::max(entries.longest, sequence.keys());
    return entries;
}

// ---- Memory --------------------------------------------------------------------------------------------------------

SideCache::SideCache(const SideCase& which, const Entries& entries, Rng& rng) : which_(which) {
    const kvjit_spec& spec = which.spec;
    if (has_blocks(spec)) num_blocks_ = entries.end;
    if (!has_blocks(spec)) max_tokens_ = entries.end;
    if (spec.cache_mode == KVJIT_SEQUENCE_TABLE) max_tokens_ = entries.longest + rng.below(4);
    codes_ = tensors_of(code_row(spec), which.spread, rng);
    if (spec.quant_bit != 0) scales_ = tensors_of(scale_row(spec), which.scale_spread, rng);
}

std::vector<std::int64_t> SideCache::shape_of(std::string_view axes, std::int64_t row) const {
    kvjit_batch extents{};
    extents.num_blocks = num_blocks_;
    extents.max_tokens = max_tokens_;
    extents.num_layers = which_.num_layers;
    extents.num_kv_heads = repeats_heads() ? 1 : which_.num_kv_heads;
    return cache_shape(which_.spec, extents, axes, row);
}

bool SideCache::repeats_heads() const {
    return which_.repeats_heads && which_.spec.cache_mode != KVJIT_BLOCK_POINTERS;
}

SideCache::Tensor SideCache::tensor(const RowType& row, const std::string& axes, Spread spread, Rng& rng) const {
    const std::vector<std::int64_t> shape = shape_of(axes, row.elements);
    const bool dense = which_.spec.cache_mode == KVJIT_BLOCK_POINTERS;
    if (dense) spread = Spread::kDense;
    const std::size_t parts = axes.find('2');
    const bool apart = parts == std::string::npos || dense;
    auto strides = !apart && which_.parts == Parts::kTwoHalves ? halves(shape, parts, spread, rng)
                                                               : spread_strides(shape, spread, rng);
    const std::int64_t way = apart ? 0 : strides[parts] * static_cast<std::int64_t>(bytes_of(row.dtype));
    const bool can_flip = !options().on_cuda() || way % kGpuAlignment == 0;
    Tensor made{Placed(row.dtype, shape, strides, which_.guard), axes};
    if (repeats_heads()) made.heads = which_.num_kv_heads;
    made.flipped = !apart && which_.parts == Parts::kValuesFirst && can_flip;
    return made;
}

std::vector<SideCache::Tensor> SideCache::tensors_of(const RowType& row, Spread spread, Rng& rng) const {
    const bool pointers = which_.spec.cache_mode == KVJIT_BLOCK_POINTERS;
    std::vector<Tensor> tensors;
    for (std::int64_t count = pointers ? num_blocks_ : 1; count > 0; --count)
        tensors.push_back(tensor(row, which_.spec.layout, spread, rng));
    if (is_apart(which_.spec)) tensors.push_back(tensor(row, std::string(value_layout(which_.spec)), spread, rng));
    return tensors;
}

/// Memory is Placed's; the way from key to value may be turned round, and heads may be one.
kvjit_tensor SideCache::Tensor::view() const {
    kvjit_tensor view = placed.view();
    const std::size_t head = axes.find('H');
    if (heads != 0) view.shape[head] = heads, view.strides[head] = 0;
    if (!flipped) return view;
    const std::size_t parts = axes.find('2');
    view.data =
        static_cast<std::byte*>(view.data) + view.strides[parts] * static_cast<std::int64_t>(bytes_of(view.dtype));
    view.strides[parts] = -view.strides[parts];
    return view;
}

std::byte* SideCache::Tensor::at(std::int64_t block, std::int64_t token, std::int64_t layer, int part,
                                 std::int64_t head) const {
    const Strided& strided = placed.strided();
    const CacheElement first{block, token, layer, flipped ? 1 - part : part, heads != 0 ? 0 : head, 0};
    return strided.data + offset_of(first, layout_axes(axes), strided.strides.data()) *
                              static_cast<std::int64_t>(bytes_of(strided.dtype));
}

std::byte* SideCache::place(const std::vector<Tensor>& tensors, std::int64_t block, std::int64_t token,
                            std::int64_t layer, int part, std::int64_t head) const {
    const std::size_t tensor = which_.spec.cache_mode == KVJIT_BLOCK_POINTERS ? u(block)
                               : has_axis(which_.spec, '2')                   ? 0
                                                                              : u(part);
    return tensors[tensor].at(block, token, layer, part, head);
}

CodeRow SideCache::row(std::int64_t block, std::int64_t token, std::int64_t layer, int part, std::int64_t head) const {
    CodeRow row{place(codes_, block, token, layer, part, head), nullptr, codes_[0].placed.strided().dtype, KVJIT_AUTO};
    if (scales_.empty()) return row;
    row.scales = place(scales_, block, token, layer, part, head);
    row.scale_dtype = scales_[0].placed.strided().dtype;
    return row;
}

kvjit_tensors SideCache::tensors() const {
    kvjit_tensors all;
    kvjit_tensors_init(&all);
    if (which_.spec.cache_mode == KVJIT_BLOCK_POINTERS) return all;
    const bool both = has_axis(which_.spec, '2');
    (both ? all.cache : all.key_cache) = codes_[0].view();
    if (!both) all.value_cache = codes_[1].view();
    if (scales_.empty()) return all;
    (both ? all.scale : all.key_scale) = scales_[0].view();
    if (!both) all.value_scale = scales_[1].view();
    return all;
}

std::intptr_t SideCache::block_address(std::int64_t block, bool scales) const {
    return reinterpret_cast<std::intptr_t>((scales ? scales_ : codes_)[u(block)].placed.strided().data);
}

void SideCache::fill_bytes(Rng& rng) {
    for (std::vector<Tensor>* tensors : {&codes_, &scales_}) {
        for (Tensor& tensor : *tensors) {
            std::byte* bytes = tensor.placed.strided().data;
            for (std::size_t i = 0; i < tensor.placed.byte_count(); ++i) bytes[i] = static_cast<std::byte>(rng.next());
        }
    }
}

void SideCache::fill_numbers(Rng& rng, bool odd) {
    static const std::vector<double> magnitudes = {1, 1, 1, 1e-7, 1e-3, 300, 0};
    static const std::vector<double> kOdd = {std::numeric_limits<double>::infinity(),
                                             std::numeric_limits<double>::quiet_NaN(), -65504.0 * 1.1};
    const double unit = which_.spec.quant_bit == 8 ? 3.0 / 127 : 3.0 / 7;
    const std::int64_t row = which_.spec.head_dim;
    for (Tensor& tensor : codes_) {
        double magnitude = 1;
        std::int64_t count = 0;
        tensor.placed.fill([&] {
            if (tensor.placed.strided().dtype == KVJIT_I8) return static_cast<double>(rng.between(-128, 127));
            if (tensor.placed.strided().dtype == KVJIT_U8) return static_cast<double>(rng.below(256));
            if (count++ % row == 0) magnitude = rng.pick(magnitudes);
            if (odd && rng.chance(0.01)) return rng.pick(kOdd);
            return rng.normal() * magnitude;
        });
    }
    for (Tensor& tensor : scales_) {
        tensor.placed.fill([&] {
            if (odd && rng.chance(0.01)) return std::numeric_limits<double>::quiet_NaN();
            return unit * (0.2 + rng.uniform());
        });
    }
}

std::vector<std::vector<std::byte>> SideCache::snapshot() const {
    std::vector<std::vector<std::byte>> all;
    for (const std::vector<Tensor>* tensors : {&codes_, &scales_}) {
        for (const Tensor& tensor : *tensors) {
            const std::byte* bytes = tensor.placed.strided().data;
            all.emplace_back(bytes, bytes + tensor.placed.byte_count());
        }
    }
    return all;
}

std::vector<int> SideCache::dtypes() const {
    std::vector<int> all;
    for (const std::vector<Tensor>* tensors : {&codes_, &scales_}) {
        for (const Tensor& tensor : *tensors) all.push_back(tensor.placed.strided().dtype);
    }
    return all;
}

void SideCache::restore(const std::vector<std::vector<std::byte>>& bytes) {
    auto next = bytes.begin();
    for (std::vector<Tensor>* tensors : {&codes_, &scales_}) {
        for (Tensor& tensor : *tensors) {
            std::ranges::copy(*next, tensor.placed.strided().data);
            ++next;
        }
    }
}

bool SideCache::is_fenced() const {
    const auto whole = [](const Tensor& tensor) { return tensor.placed.slack_is_whole(); };
    return std::ranges::all_of(codes_, whole) && std::ranges::all_of(scales_, whole);
}

// ---- The batch -----------------------------------------------------------------------------------------------------

Side::Side(const SideCase& which, std::vector<Sequence> sequences, Entries entries, std::shared_ptr<SideCache> cache,
           Rng& rng)
    : which_(which), sequences_(std::move(sequences)), entries_(std::move(entries)), cache_(std::move(cache)) {
    make_starts();
    make_rows(rng);
    make_tables(rng);
}

Side::Side(const SideCase& which, const std::vector<Sequence>& sequences, const Entries& entries, Rng& rng)
    : Side(which, sequences, entries, std::make_shared<SideCache>(which, entries, rng), rng) {}

Side::Side(const SideCase& which, const std::vector<Sequence>& sequences, Rng& rng)
    : Side(which, sequences, scatter(which, sequences, rng), rng) {}

Placed Side::integers(const std::vector<std::int64_t>& values) const {
    return Placed::integers(values, which_.spec.starts_type, which_.guard);
}

void Side::make_starts() {
    std::vector<std::int64_t> fresh, keys, last, past;
    for (const Sequence& sequence : sequences_) {
        fresh.push_back(sequence.fresh);
        past.push_back(sequence.past);
        keys.push_back(sequence.keys());
        last.push_back(sequence.keys() == 0 ? -1 : (sequence.keys() - 1) % which_.spec.page_size + 1);
    }
    seqstarts_ = integers(sums(fresh));
    if (which_.keys_by == KeysBy::kStarts) kvstarts_ = integers(sums(keys));
    if (which_.keys_by == KeysBy::kLens) kvlens_ = integers(keys);
    if (which_.keys_by == KeysBy::kLastPage) last_page_len_ = integers(last);
    if (which_.given == Given::kAll) start_pos_ = integers(past);
}

/// Where each sequence's row begins in a table, and the shape of that.
void Side::make_rows(Rng& rng) {
    const kvjit_spec& spec = which_.spec;
    const auto batch = static_cast<std::int64_t>(sequences_.size());
    std::vector<std::int64_t> lengths;
    std::int64_t longest = 0;
    for (const Sequence& sequence : sequences_) {
        const bool counted = !has_pages(spec) || which_.keys_by == KeysBy::kLastPage;
        lengths.push_back(pages_of(spec, sequence) + (counted ? 0 : rng.below(3)));
        longest = std::max(longest, lengths.back());
    }
    row_begins_ = sums(lengths);
    table_shape_ = {row_begins_.back()};
    if (!has_pages(spec)) return;
    if (which_.rows == TableRows::kCsr) {
        rowstarts_ = integers(row_begins_);
        return;
    }
    std::vector<std::int64_t> rows(u(which_.rows == TableRows::kIndexed ? batch + 2 : batch));
    std::iota(rows.begin(), rows.end(), 0);
    if (which_.rows == TableRows::kIndexed) rng.shuffle(rows);
    table_shape_ = {static_cast<std::int64_t>(rows.size()), longest};
    rows.resize(u(batch));
    row_begins_.clear();
    for (const std::int64_t row : rows) row_begins_.push_back(row * longest);
    if (which_.rows == TableRows::kIndexed) row_index_ = integers(rows);
}

std::vector<std::int64_t> Side::table_of(std::size_t layer) const {
    std::int64_t elements = 1;
    for (const std::int64_t extent : table_shape_) elements *= extent;
    std::vector<std::int64_t> numbers(u(elements), kUnused);
    for (std::size_t b = 0; b < sequences_.size(); ++b)
        std::ranges::copy(entries_.of[layer][b], numbers.begin() + row_begins_[b]);
    return numbers;
}

Placed Side::table(const std::vector<std::int64_t>& numbers, std::vector<std::int64_t> strides) const {
    std::vector<std::int64_t> shape = table_shape_;
    if (which_.layer_tables) shape.insert(shape.begin(), which_.num_layers);
    Placed placed(which_.spec.index_type, shape, std::move(strides), which_.guard);
    auto next = numbers.begin();
    placed.fill([&] { return static_cast<double>(*next++); });
    return placed;
}

void Side::make_tables(Rng& rng) {
    std::vector<std::int64_t> shape = table_shape_, numbers;
    if (which_.layer_tables) shape.insert(shape.begin(), which_.num_layers);
    for (std::size_t layer = 0; layer < entries_.of.size(); ++layer) {
        const std::vector<std::int64_t> layers = table_of(layer);
        numbers.insert(numbers.end(), layers.begin(), layers.end());
    }
    const std::vector<std::int64_t> strides = spread_strides(shape, which_.spread, rng);
    const bool pointers = which_.spec.cache_mode == KVJIT_BLOCK_POINTERS;
    const auto addresses = [&](bool scales) {
        std::vector<std::int64_t> all = numbers;
        for (std::int64_t& each : all) each = each < 0 ? each : cache_->block_address(each, scales);
        return all;
    };
    cachestarts_ = table(pointers ? addresses(false) : numbers, strides);
    if (pointers && which_.spec.quant_bit != 0) scalestarts_ = table(addresses(true), strides);
}

kvjit_batch Side::batch() const {
    kvjit_batch batch;
    kvjit_batch_init(&batch);
    batch.batch_size = static_cast<std::int64_t>(sequences_.size());
    batch.num_kv_heads = which_.num_kv_heads;
    batch.num_layers = which_.num_layers;
    batch.max_tokens = cache_->max_tokens();
    batch.num_blocks = which_.spec.cache_mode == KVJIT_BLOCK_POINTERS ? 0 : cache_->num_blocks();
    batch.seqstarts = seqstarts_.view().data;
    batch.kvstarts = kvstarts_.view().data;
    batch.kvlens = kvlens_.view().data;
    batch.last_page_len = last_page_len_.view().data;
    batch.start_pos = start_pos_.view().data;
    batch.cachestarts = cachestarts_.view();
    batch.scalestarts = scalestarts_.view();
    batch.rowstarts = rowstarts_.view().data;
    batch.row_index = row_index_.view().data;
    return batch;
}

CodeRow Side::row(std::size_t sequence, std::int64_t position, std::int64_t layer, int part, std::int64_t head) const {
    const std::int64_t page = page_of(which_.spec);
    const std::size_t table = which_.layer_tables ? u(layer) : 0;
    const std::int64_t entry = entries_.of[table][sequence][u(position / page)], rest = position % page;
    if (has_blocks(which_.spec)) return cache_->row(entry, rest, layer, part, head);
    return cache_->row(0, entry + rest, layer, part, head);
}

}  // namespace kvjit::test
