#include "oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

namespace kvjit::oracle {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr float kSmallestScale = 1e-5F;

std::size_t u(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

std::int64_t page_entry(const Problem& problem, std::int64_t b, std::int64_t page) {
    if (!problem.rowstarts.empty()) return problem.cachestarts[u(problem.rowstarts[u(b)] + page)];
    const std::int64_t row = problem.row_index.empty() ? b : problem.row_index[u(b)];
    return problem.cachestarts[u(row * problem.table_columns + page)];
}

/// Four bits of a byte as two's complement; element 2i lies in the low ones.
int read_nibble(const CacheRow& row, std::int64_t d) {
    const int byte = std::to_integer<int>(*row.at(d / 2));
    const int nibble = d % 2 == 0 ? byte % 16 : byte / 16;
    return nibble < 8 ? nibble : nibble - 16;
}

void write_nibble(const CacheRow& row, std::int64_t d, int code) {
    const int old = std::to_integer<int>(*row.at(d / 2));
    const int nibble = (code + 16) % 16;
    const int byte = d % 2 == 0 ? old / 16 * 16 + nibble : nibble * 16 + old % 16;
    *row.at(d / 2) = static_cast<std::byte>(byte);
}

/// The scale that a group's largest magnitude gets, rounded to t3: the value that is stored, as a float.
float group_scale(float largest, float qmax, int t3) {
    const float exact = std::max(largest / qmax, kSmallestScale);
    if (t3 == KVJIT_F32) return exact;
    const double number = static_cast<double>(exact);
    if (t3 == KVJIT_F16) return static_cast<float>(from_half(to_half(std::min(number, 65504.0))));
    return static_cast<float>(from_bfloat16(to_bfloat16(std::min(number, std::ldexp(255, 120)))));
}

int quantise(float x, float scale, float qmax) {
    return static_cast<int>(std::clamp(std::nearbyint(x / scale), -qmax, qmax));
}

ScaledRow scaled_row(const Problem& problem, const CacheMemory& cache, const CacheMemory& scale, int key_or_value,
                     Slot slot, std::int64_t head) {
    return {cache_row(problem, cache, key_or_value, slot, head),
            scale.present() ? cache_row(problem, scale, key_or_value, slot, head) : CacheRow{}};
}

void write_row(const CacheRow& to, std::int64_t i, double number) {
    write_element(to.at(i), to.dtype, 0, number);
}
double read_row(const CacheRow& from, std::int64_t i) {
    return read_element(from.at(i), from.dtype, 0);
}

/// The D elements of a row that isn't quantised.
std::vector<float> row_of(const kvjit_spec& spec, const CacheRow& from) {
    std::vector<float> row;
    row.reserve(u(spec.head_dim));
    for (std::int64_t d = 0; d < spec.head_dim; ++d) row.push_back(static_cast<float>(read_row(from, d)));
    return row;
}

void store_row(const Problem& problem, const Strided& source, std::int64_t token, std::int64_t head,
               const ScaledRow& to) {
    const std::int64_t head_dim = problem.spec.head_dim;
    const std::int64_t from = source.index(token, head, 0);
    if (problem.spec.quant_bit == 0 && source.dtype == to.codes.dtype) {
        const std::size_t width = bytes_of(source.dtype);
        for (std::int64_t d = 0; d < head_dim; ++d)
            std::memcpy(to.codes.at(d), source.data + u(from + d) * width, width);
        return;
    }
    std::vector<float> row(u(head_dim));
    for (std::int64_t d = 0; d < head_dim; ++d) {
        row[u(d)] = static_cast<float>(read_element(source.data, source.dtype, from + d));
    }
    if (problem.spec.quant_bit != 0) return quantise_row(problem.spec, row, to);
    for (std::int64_t d = 0; d < head_dim; ++d) write_row(to.codes, d, static_cast<double>(row[u(d)]));
}

double slope_of(const Problem& problem, std::int64_t head) {
    if (!problem.slopes.empty()) return static_cast<double>(problem.slopes[u(head)]);
    std::int64_t c = 1;
    while (c * 2 <= problem.num_heads) c *= 2;
    const double h = static_cast<double>(head);
    const double exponent = head < c ? -8 * (h + 1) / static_cast<double>(c)
                                     : -4 * (2 * (h - static_cast<double>(c)) + 1) / static_cast<double>(c);
    return std::exp2(exponent);
}

/// One query row: token i of sequence b, head h.
struct Row {
    std::int64_t b, i, h;
};

double mask_of(const Problem& problem, const Strided& mask, Row row, std::int64_t j) {
    if (!mask.present()) return 0;
    const std::int64_t token = problem.seqstarts[u(row.b)] + row.i;
    const std::int64_t column = problem.kvstarts[u(row.b)] + j;
    return problem.spec.attn_mask == 2 ? mask.at(token, column) : mask.at(row.h, token, column);
}

/// Scores of one row, -inf where hidden. Hidden keys are never read: they may hold anything.
std::vector<double> scores_of(const Problem& problem, const Strided& query, const Dense& key, const Strided& mask,
                              Row row) {
    const kvjit_spec& spec = problem.spec;
    const std::int64_t m = problem.kv_tokens(row.b);
    const std::int64_t n = problem.new_tokens(row.b);
    const double scale = problem.softmax_scale != 0 ? static_cast<double>(problem.softmax_scale)
                                                    : 1 / std::sqrt(static_cast<double>(spec.head_dim));
    const std::int64_t kv_head = row.h / (problem.num_heads / problem.num_kv_heads);
    const std::int64_t query_at = query.index(problem.seqstarts[u(row.b)] + row.i, row.h, 0);
    std::vector<double> q(u(spec.head_dim));
    for (std::int64_t d = 0; d < spec.head_dim; ++d) q[u(d)] = read_element(query.data, query.dtype, query_at + d);
    std::vector<double> scores(u(m), kMinusInfinity);
    for (std::int64_t j = 0; j < m; ++j) {
        const std::int64_t dist = j - (m - n + row.i);
        if (!in_sight(problem, row.b, row.i, j)) continue;
        const double bias = mask_of(problem, mask, row, j);
        if (bias == kMinusInfinity) continue;
        const float* k = &key[u(((problem.kvstarts[u(row.b)] + j) * problem.num_kv_heads + kv_head) * spec.head_dim)];
        double dot = 0;
        for (std::int64_t d = 0; d < spec.head_dim; ++d) dot += q[u(d)] * static_cast<double>(k[d]);
        double score = dot * scale;
        const auto cap = static_cast<double>(problem.soft_cap);
        if (spec.has_soft_cap) score = cap * std::tanh(score / cap);
        scores[u(j)] = score + bias;
        if (spec.is_alibi) scores[u(j)] += slope_of(problem, row.h) * static_cast<double>(dist);
    }
    return scores;
}

/// Softmax of `scores` times the values, into `output`; returns lse. No visible key: 0 and -inf.
double weighted_sum(const Problem& problem, const std::vector<double>& scores, const Dense& value, Row row,
                    double* output) {
    const std::int64_t head_dim = problem.spec.head_dim;
    const std::int64_t kv_head = row.h / (problem.num_heads / problem.num_kv_heads);
    double largest = kMinusInfinity;
    for (const double score : scores) {
        if (score > largest || std::isnan(score)) largest = score;
    }
    std::fill(output, output + head_dim, 0.0);
    if (largest == kMinusInfinity) return kMinusInfinity;
    double sum = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
        if (scores[j] == kMinusInfinity) continue;
        const double p = std::exp(scores[j] - largest);
        const std::int64_t token = problem.kvstarts[u(row.b)] + static_cast<std::int64_t>(j);
        const float* v = &value[u((token * problem.num_kv_heads + kv_head) * head_dim)];
        for (std::int64_t d = 0; d < head_dim; ++d) output[d] += p * static_cast<double>(v[d]);
        sum += p;
    }
    const double sink = problem.sinks.empty() ? 0 : std::exp(static_cast<double>(problem.sinks[u(row.h)]) - largest);
    for (std::int64_t d = 0; d < head_dim; ++d) output[d] /= sum + sink;
    return largest + std::log(sum);
}

}  // namespace

void quantise_row(const kvjit_spec& spec, const std::vector<float>& row, const ScaledRow& to) {
    const float qmax = spec.quant_bit == 8 ? 127.0F : 7.0F;
    for (std::int64_t group = 0; group < spec.head_dim / spec.quant_group; ++group) {
        const std::int64_t first = group * spec.quant_group;
        float largest = 0;
        bool finite = true;
        for (std::int64_t d = first; d < first + spec.quant_group; ++d) {
            finite = finite && std::isfinite(row[u(d)]);
            largest = std::max(largest, std::fabs(row[u(d)]));
        }
        const float s = finite ? group_scale(largest, qmax, to.scales.dtype) : std::nanf("");
        write_row(to.scales, group, static_cast<double>(s));
        for (std::int64_t d = first; d < first + spec.quant_group; ++d) {
            const int code = finite ? quantise(row[u(d)], s, qmax) : 0;
            if (spec.quant_bit == 4) write_nibble(to.codes, d, code);
            if (spec.quant_bit == 8) write_row(to.codes, d, code);
        }
    }
}

std::vector<float> dequantised(const kvjit_spec& spec, const ScaledRow& from) {
    std::vector<float> row;
    row.reserve(u(spec.head_dim));
    for (std::int64_t group = 0; group < spec.head_dim / spec.quant_group; ++group) {
        const auto s = static_cast<float>(read_row(from.scales, group));
        for (std::int64_t d = group * spec.quant_group; d < (group + 1) * spec.quant_group; ++d) {
            const int code =
                spec.quant_bit == 4 ? read_nibble(from.codes, d) : static_cast<int>(read_row(from.codes, d));
            row.push_back(static_cast<float>(code) * s);
        }
    }
    return row;
}

bool in_sight(const Problem& problem, std::int64_t b, std::int64_t i, std::int64_t j) {
    const kvjit_spec& spec = problem.spec;
    const bool decoding = b < problem.decoding_batches;
    const std::int64_t dist = j - (problem.kv_tokens(b) - problem.new_tokens(b) + i);
    if (dist > 0 && (spec.is_alibi || (spec.is_causal && !decoding))) return false;
    if (!spec.has_window) return true;
    if (problem.window_right >= 0 && !decoding && dist > problem.window_right) return false;
    return problem.window_left < 0 || dist >= -problem.window_left;
}

Slot slot_of(const Problem& problem, std::int64_t b, std::int64_t position) {
    const std::int64_t page_size = problem.spec.page_size;
    switch (problem.spec.cache_mode) {
        case KVJIT_OFFSET:
            return {0, problem.cachestarts[u(b)] + position};
        case KVJIT_TOKEN_TABLE:
            return {0, problem.cachestarts[u(problem.kvstarts[u(b)] + position)]};
        case KVJIT_PAGE_TABLE:
            return {0, page_entry(problem, b, position / page_size) + position % page_size};
        case KVJIT_SEQUENCE_TABLE:
            return {problem.cachestarts[u(b)], position};
        default:
            return {page_entry(problem, b, position / page_size), position % page_size};
    }
}

CacheRow cache_row(const Problem& problem, const CacheMemory& cache, int key_or_value, Slot slot, std::int64_t head) {
    const kvjit_spec& spec = problem.spec;
    const bool is_value = is_apart(spec) && key_or_value == 1;
    const std::vector<LayoutAxis> axes = layout_axes(is_value ? value_layout(spec) : spec.layout);
    std::size_t which = is_value ? 1 : 0;
    if (spec.cache_mode == KVJIT_BLOCK_POINTERS) which = u(slot.block);
    const Strided& tensor = cache.tensors[which];
    CacheRow row{nullptr, tensor.dtype, 1, 0, 0};
    for (std::size_t i = 0; i < axes.size(); ++i) {
        if (axes[i].name == 'D') row.piece = axes[i].inner, row.piece_stride = tensor.strides[i];
        if (axes[i].name == 'd') row.element_stride = tensor.strides[i];
    }
    const CacheElement first{slot.block, slot.token, problem.layer, key_or_value, head, 0};
    row.first =
        tensor.data + offset_of(first, axes, tensor.strides.data()) * static_cast<std::int64_t>(bytes_of(tensor.dtype));
    return row;
}

std::optional<Slot> place_of_new(const Problem& problem, std::int64_t b, std::int64_t i) {
    if (problem.store_slots.empty()) return slot_of(problem, b, problem.start_pos[u(b)] + i);
    const std::int64_t slot = problem.store_slots[u(problem.seqstarts[u(b)] + i)];
    if (slot < 0) return std::nullopt;
    if (problem.block_tokens == 0) return Slot{0, slot};
    return Slot{slot / problem.block_tokens, slot % problem.block_tokens};
}

void oracle_store(const Problem& problem, const Strided& key, const Strided& value, const CacheMemory& cache,
                  const CacheMemory& scale) {
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        for (std::int64_t i = 0; i < problem.new_tokens(b); ++i) {
            const std::int64_t token = problem.seqstarts[u(b)] + i;
            const std::optional<Slot> place = place_of_new(problem, b, i);
            if (!place) continue;
            const Slot slot = *place;
            for (std::int64_t h = 0; h < problem.num_kv_heads; ++h) {
                store_row(problem, key, token, h, scaled_row(problem, cache, scale, 0, slot, h));
                store_row(problem, value, token, h, scaled_row(problem, cache, scale, 1, slot, h));
            }
        }
    }
}

/// Whether a window hides the position from every new token: the table may have anything for it then.
bool is_past_window(const Problem& problem, std::int64_t b, std::int64_t t) {
    const std::int64_t first_new = problem.kv_tokens(b) - problem.new_tokens(b);
    return problem.spec.has_window != 0 && problem.window_left >= 0 && t < first_new - problem.window_left;
}

Dense oracle_load(const Problem& problem, int key_or_value, const CacheMemory& cache, const CacheMemory& scale) {
    const kvjit_spec& spec = problem.spec;
    Dense dense;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        for (std::int64_t t = 0; t < problem.kv_tokens(b); ++t) {
            if (problem.loads_for_attention && is_past_window(problem, b, t)) {
                dense.resize(dense.size() + u(problem.num_kv_heads * spec.head_dim), std::nanf(""));
                continue;
            }
            const Slot slot = slot_of(problem, b, t);
            for (std::int64_t h = 0; h < problem.num_kv_heads; ++h) {
                const ScaledRow row = scaled_row(problem, cache, scale, key_or_value, slot, h);
                const std::vector<float> numbers =
                    spec.quant_bit != 0 ? dequantised(spec, row) : row_of(spec, row.codes);
                dense.insert(dense.end(), numbers.begin(), numbers.end());
            }
        }
    }
    return dense;
}

Dense oracle_dense(const Problem& problem, const Strided& tensor) {
    Dense dense;
    for (std::int64_t t = 0; t < problem.kvstarts.back(); ++t) {
        for (std::int64_t h = 0; h < problem.num_kv_heads; ++h) {
            for (std::int64_t d = 0; d < problem.spec.head_dim; ++d) {
                dense.push_back(static_cast<float>(tensor.at(t, h, d)));
            }
        }
    }
    return dense;
}

Attended oracle_attend(const Problem& problem, const Strided& query, const Dense& key, const Dense& value,
                       const Strided& mask) {
    const std::int64_t rows = problem.seqstarts.back() * problem.num_heads;
    Attended attended{std::vector<double>(u(rows * problem.spec.head_dim)), std::vector<double>(u(rows))};
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        for (std::int64_t i = 0; i < problem.new_tokens(b); ++i) {
            for (std::int64_t h = 0; h < problem.num_heads; ++h) {
                const std::int64_t at = (problem.seqstarts[u(b)] + i) * problem.num_heads + h;
                const auto scores = scores_of(problem, query, key, mask, {b, i, h});
                attended.lse[u(at)] = weighted_sum(problem, scores, value, {b, i, h},
                                                   attended.output.data() + at * problem.spec.head_dim);
            }
        }
    }
    return attended;
}

Attended oracle_merge(const std::vector<Attended>& parts, std::int64_t head_dim, const std::vector<float>& sinks) {
    Attended merged{std::vector<double>(parts[0].output.size(), 0.0),
                    std::vector<double>(parts[0].lse.size(), kMinusInfinity)};
    for (std::size_t row = 0; row < merged.lse.size(); ++row) {
        double largest = kMinusInfinity, sum = 0;
        for (const Attended& part : parts) {
            if (!std::isinf(part.lse[row])) largest = std::max(largest, part.lse[row]);
        }
        const auto weight_of = [&](const Attended& part, double whole) {
            return std::isinf(part.lse[row]) ? 0.0 : std::exp(part.lse[row] - whole);
        };
        for (const Attended& part : parts) sum += weight_of(part, largest);
        if (sum != 0) merged.lse[row] = largest + std::log(sum);
        // Heads are the last axis of lse.
        const double sink = sinks.empty() || sum == 0 ? kMinusInfinity : static_cast<double>(sinks[row % sinks.size()]);
        const double whole = sum == 0 ? kMinusInfinity : merged.lse[row] + std::log1p(std::exp(sink - merged.lse[row]));
        for (const Attended& part : parts) {
            const double weight = weight_of(part, whole);
            for (std::size_t d = 0; d < u(head_dim); ++d) {
                merged.output[row * u(head_dim) + d] += weight * part.output[row * u(head_dim) + d];
            }
        }
    }
    return merged;
}

}  // namespace kvjit::oracle
