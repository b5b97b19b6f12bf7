#include "gpu/step.h"

#include <algorithm>
#include <stdexcept>

#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kKvHeads = 2, kLayers = 2, kLayer = 1;
constexpr std::int64_t kSparePages = 3;
constexpr std::byte kUnwritten{0xff};  // NaN in both float types

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

void fill_normal(Array& array, Rng& rng) {
    const auto count = static_cast<std::int64_t>(array.bytes().size() / bytes_of(array.host().dtype));
    for (std::int64_t i = 0; i < count; ++i) write_element(array.host().data, array.host().dtype, i, rng.normal());
}

void fill_codes(Array& array, Rng& rng) {
    for (std::byte& code : array.bytes()) code = static_cast<std::byte>(rng.between(-127, 127));
}

void fill_scales(Array& array, Rng& rng) {
    if (!array.host().present()) return;
    const auto count = static_cast<std::int64_t>(array.bytes().size() / bytes_of(array.host().dtype));
    for (std::int64_t i = 0; i < count; ++i) {
        write_element(array.host().data, array.host().dtype, i, 0.01 + 0.01 * rng.uniform());
    }
}

KernelSpec parse(const std::string& text) {
    const auto spec = KernelSpec::parse(text);
    if (!spec) throw std::runtime_error(spec.error().message());
    return *spec;
}

}  // namespace

Step::Step(Machine& machine, const std::string& spec, StepLimits limits)
    : machine_(machine), spec_(parse(spec)), limits_(limits) {
    const std::int64_t rows = limits.sequences * limits.new_tokens, d = spec_.head_dim;
    problem_.spec = spec_;
    problem_.num_kv_heads = kKvHeads;
    problem_.num_heads = kKvHeads * spec_.group;
    problem_.num_layers = kLayers;
    problem_.layer = kLayer;
    problem_.table_columns = ceil_div(limits.keys, spec_.page_size);
    seqstarts_ = Array(machine, KVJIT_I64, {limits.sequences + 1});
    kvstarts_ = Array(machine, KVJIT_I64, {limits.sequences + 1});
    start_pos_ = Array(machine, KVJIT_I64, {limits.sequences});
    table_ = Array(machine, spec_.index_type, {limits.sequences, problem_.table_columns});
    query_ = Array(machine, spec_.t1, {rows, problem_.num_heads, d});
    key_ = Array(machine, spec_.t1, {rows, kKvHeads, d});
    value_ = Array(machine, spec_.t1, {rows, kKvHeads, d});
    const int codes = spec_.quant_bit == 8 ? KVJIT_I8 : spec_.quant_bit == 4 ? KVJIT_U8 : spec_.t1;
    cache_ = Array(machine, codes, cache_shape(spec_.quant_bit == 4 ? d / 2 : d));
    if (spec_.quant_bit != 0) {
        const int scale_type = spec_.t3 == KVJIT_AUTO ? spec_.t1 : spec_.t3;
        scale_ = Array(machine, scale_type, cache_shape(d / spec_.quant_group));
    }
    output_ = Array(machine, spec_.t1, {rows, problem_.num_heads, d});
    lse_ = Array(machine, KVJIT_F32, {rows, problem_.num_heads});
    draw(1);
}

/// Extents by the letters of the layout.
std::vector<std::int64_t> Step::cache_shape(std::int64_t row_elements) const {
    const std::int64_t pages = limits_.sequences * problem_.table_columns + kSparePages;
    const bool blocks = spec_.cache_mode == KVJIT_BLOCK_TABLE;
    std::vector<std::int64_t> shape;
    for (const char* axis = spec_.layout; *axis != '\0'; ++axis) {
        shape.push_back(*axis == 'T'   ? (blocks ? spec_.page_size : pages * spec_.page_size)
                        : *axis == 'N' ? pages
                        : *axis == 'L' ? kLayers
                        : *axis == '2' ? 2
                        : *axis == 'H' ? kKvHeads
                                       : row_elements);
    }
    return shape;
}

void Step::draw(std::uint64_t seed) {
    Rng rng(seed);
    draw_lengths(rng);
    draw_table(rng);
    draw_numbers(rng);
    upload();
    reset();
}

/// The first sequence is as long as may be; others may be empty.
void Step::draw_lengths(Rng& rng) {
    problem_.seqstarts = problem_.kvstarts = {0};
    problem_.start_pos.clear();
    for (std::int64_t b = 0; b < limits_.sequences; ++b) {
        const std::int64_t tokens = b == 0 ? limits_.new_tokens : rng.between(0, limits_.new_tokens);
        const std::int64_t keys = b == 0 ? limits_.keys : rng.between(tokens, limits_.keys);
        problem_.seqstarts.push_back(problem_.seqstarts.back() + tokens);
        problem_.kvstarts.push_back(problem_.kvstarts.back() + keys);
        problem_.start_pos.push_back(keys - tokens);
    }
}

/// Pages in any order; entries that no key needs are -1.
void Step::draw_table(Rng& rng) {
    const bool blocks = spec_.cache_mode == KVJIT_BLOCK_TABLE;
    std::vector<std::int64_t> pages;
    for (std::int64_t page = 0; page < limits_.sequences * problem_.table_columns + kSparePages; ++page) {
        pages.push_back(blocks ? page : page * spec_.page_size);
    }
    rng.shuffle(pages);
    problem_.cachestarts.clear();
    for (std::int64_t b = 0; b < limits_.sequences; ++b) {
        const std::int64_t used = ceil_div(problem_.kv_tokens(b), spec_.page_size);
        for (std::int64_t p = 0; p < problem_.table_columns; ++p) {
            problem_.cachestarts.push_back(p < used ? pages.back() : -1);
            pages.pop_back();
        }
    }
}

void Step::draw_numbers(Rng& rng) {
    for (Array* each : {&query_, &key_, &value_}) fill_normal(*each, rng);
    spec_.quant_bit != 0 ? fill_codes(cache_, rng) : fill_normal(cache_, rng);
    fill_scales(scale_, rng);
}

void Step::upload() {
    seqstarts_.set(problem_.seqstarts);
    kvstarts_.set(problem_.kvstarts);
    start_pos_.set(problem_.start_pos);
    table_.set(problem_.cachestarts);
    for (Array* each : {&seqstarts_, &kvstarts_, &start_pos_, &table_, &query_, &key_, &value_}) each->upload();
}

void Step::reset() {
    output_.fill(kUnwritten);
    lse_.fill(kUnwritten);
    for (Array* each : {&cache_, &scale_, &output_, &lse_}) each->upload();
}

void Step::set_entry(std::int64_t b, std::int64_t p, std::int64_t entry) {
    problem_.cachestarts[static_cast<std::size_t>(b * problem_.table_columns + p)] = entry;
    table_.set(problem_.cachestarts);
    table_.upload();
}

std::span<const std::byte> Step::rows_in(const Array& array, std::span<const std::byte> bytes, std::int64_t b) const {
    const std::size_t row = bytes.size() / static_cast<std::size_t>(array.host().shape[0]);
    const auto first = static_cast<std::size_t>(problem_.seqstarts[static_cast<std::size_t>(b)]);
    return bytes.subspan(first * row, static_cast<std::size_t>(problem_.new_tokens(b)) * row);
}

std::unique_ptr<Step> Step::alone(std::int64_t b) const {
    const auto text = spec_.text();
    if (!text) throw std::runtime_error(text.error().message());
    auto step = std::make_unique<Step>(machine_, *text, StepLimits{1, limits_.new_tokens, limits_.keys});
    Problem& other = step->problem_;
    const auto at = static_cast<std::size_t>(b);
    other.seqstarts = {0, problem_.new_tokens(b)};
    other.kvstarts = {0, problem_.kv_tokens(b)};
    other.start_pos = {problem_.start_pos[at]};
    const auto row = problem_.cachestarts.begin() + b * problem_.table_columns;
    other.cachestarts.assign(row, row + problem_.table_columns);
    step->cache_ = cache_.clone();
    step->scale_ = scale_.clone();
    std::ranges::copy(rows_in(query_, query_.bytes(), b), step->query_.bytes().begin());
    std::ranges::copy(rows_in(key_, key_.bytes(), b), step->key_.bytes().begin());
    std::ranges::copy(rows_in(value_, value_.bytes(), b), step->value_.bytes().begin());
    step->upload();
    step->reset();
    return step;
}

}  // namespace kvjit::test
