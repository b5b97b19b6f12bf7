// PMX's static-batch operators (docs/semantics.md, section 10) by their own definition: loops over dense tensors with
// axes B and S and one start_pos. kvjit gets the same memory as a batch of equal sequences.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/options.h"
#include "conformance/placed.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kBatch = 3, kMaxBatch = 4, kLayers = 3, kLayer = 1, kKvHeads = 2, kDim = 64;
constexpr std::int64_t kScaleGroup = 8, kRoom = 64;

struct Setting {
    std::string layout;
    bool heads_first;  // (L, MaxB, 2, H, MaxS, D), else (MaxB, L, 2, MaxS, H, D)
    std::string types;
    std::int64_t group;

    kvjit_spec spec(const std::string& op) const {
        return spec_of("op=" + op + ",head_dim=64,layout=" + layout + "," + types +
                       (op == "KeyValueCache" ? "" : ",is_causal=1,group=" + std::to_string(group)));
    }
};

/// Calls body(b, part, s, g) for tokens first..last-1 of all sequences, for their keys (part 0) and values (1).
template <class Body>
void each_row(std::int64_t first, std::int64_t last, Body body) {
    for (std::int64_t b = 0; b < kBatch; ++b) {
        for (std::int64_t part = 0; part < 2; ++part) {
            for (std::int64_t s = first; s < last; ++s) {
                for (std::int64_t g = 0; g < kKvHeads; ++g) body(b, part, s, g);
            }
        }
    }
}

/// A dense tensor that is full of NaN.
Placed dense(int dtype, const std::vector<std::int64_t>& shape) {
    Rng unused(1);
    return {dtype, shape, spread_strides(shape, Spread::kDense, unused), Guard::kAfter};
}

Placed normals(int dtype, const std::vector<std::int64_t>& shape, Rng& rng) {
    Placed tensor = dense(dtype, shape);
    tensor.fill([&] { return rng.normal(); });
    return tensor;
}

/// cache or scale with room for max_seq tokens of each sequence.
struct Memory {
    bool heads_first;
    std::int64_t max_seq, row;  // elements of a token's head
    Placed tensor;

    Memory(bool heads_first_of_tokens, int dtype, std::int64_t tokens, std::int64_t row_elements)
        : heads_first(heads_first_of_tokens),
          max_seq(tokens),
          row(row_elements),
          tensor(heads_first ? dense(dtype, {kLayers, kMaxBatch, 2, kKvHeads, tokens, row})
                             : dense(dtype, {kMaxBatch, kLayers, 2, tokens, kKvHeads, row})) {}

    /// Element d of token s at kv head g of sequence b, of its key (part 0) or its value (1), at kLayer.
    std::int64_t at(std::int64_t b, std::int64_t part, std::int64_t s, std::int64_t g, std::int64_t d) const {
        const std::int64_t token_head = heads_first ? g * max_seq + s : s * kKvHeads + g;
        const std::int64_t block = heads_first ? kLayer * kMaxBatch + b : b * kLayers + kLayer;
        return ((block * 2 + part) * kKvHeads * max_seq + token_head) * row + d;
    }

    std::byte* row_of(std::int64_t b, std::int64_t part, std::int64_t s, std::int64_t g) const {
        return tensor.strided().data + at(b, part, s, g, 0) * static_cast<std::int64_t>(element_bytes());
    }
    double number(std::int64_t index) const {
        return read_element(tensor.strided().data, tensor.strided().dtype, index);
    }
    std::size_t element_bytes() const { return bytes_of(tensor.strided().dtype); }

    /// What an engine does whose sequences outgrow their memory.
    Memory grown(std::int64_t tokens, std::int64_t used) const {
        Memory larger(heads_first, tensor.strided().dtype, tokens, row);
        each_row(0, used, [&](auto... at) {
            std::memcpy(larger.row_of(at...), row_of(at...), static_cast<std::size_t>(row) * element_bytes());
        });
        return larger;
    }
};

/// A quantised cache has a scale.
class Cache {
public:
    Memory codes, scales;

    Cache(const Setting& setting, std::int64_t tokens) : Cache(setting, setting.spec("KeyValueCache"), tokens) {}
    Cache(const Setting& setting, const kvjit_spec& spec, std::int64_t tokens)
        : codes(setting.heads_first, spec.quant_bit == 8 ? KVJIT_I8 : spec.t1, tokens, kDim),
          scales(setting.heads_first, spec.t1, spec.quant_bit == 8 ? tokens : 0, kDim / kScaleGroup) {}

    bool quantised() const { return scales.max_seq != 0; }
    void grow(std::int64_t tokens, std::int64_t used) {
        codes = codes.grown(tokens, used);
        if (quantised()) scales = scales.grown(tokens, used);
    }
    void show(kvjit_tensors& tensors) const {
        tensors.cache = codes.tensor.view();
        if (quantised()) tensors.scale = scales.tensor.view();
    }
    bool operator==(const Cache& other) const {
        return codes.tensor.packed() == other.codes.tensor.packed() &&
               scales.tensor.packed() == other.scales.tensor.packed();
    }

    /// cache[b, kLayer, part, s, g, :] = quant(row)
    void store(std::int64_t b, std::int64_t part, std::int64_t s, std::int64_t g, const std::vector<double>& row) {
        for (std::int64_t d = 0; d < kDim; ++d) {
            const double number = row[static_cast<std::size_t>(d)];
            if (quantised() && d % kScaleGroup == 0) store_scale(scales.at(b, part, s, g, d / kScaleGroup), &row[d]);
            codes.tensor.set(codes.at(b, part, s, g, d),
                             quantised() ? code_of(number, scales.at(b, part, s, g, d / kScaleGroup)) : number);
        }
    }
    double load(std::int64_t b, std::int64_t part, std::int64_t s, std::int64_t g, std::int64_t d) const {
        const double code = codes.number(codes.at(b, part, s, g, d));
        return quantised() ? static_cast<float>(code) * scale_at(scales.at(b, part, s, g, d / kScaleGroup)) : code;
    }

private:
    void store_scale(std::int64_t at, const double* group) {
        double largest = 0;
        for (std::int64_t i = 0; i < kScaleGroup; ++i) largest = std::max(largest, std::abs(group[i]));
        scales.tensor.set(at, std::max(static_cast<float>(largest) / 127.0F, 1e-5F));
    }
    float scale_at(std::int64_t at) const { return static_cast<float>(scales.number(at)); }
    double code_of(double number, std::int64_t at) const {
        return std::clamp(std::nearbyint(static_cast<float>(number) / scale_at(at)), -127.0F, 127.0F);
    }
};

/// Inputs and outputs of one call of S tokens at start_pos.
struct Step {
    std::int64_t tokens, start_pos, num_heads;
    Placed query, key, value;         // (B, S, H, D), (B, S, Hkv, D)
    Placed loaded_key, loaded_value;  // (B, start_pos + S, Hkv, D)
    Placed attn_output;               // as query
    std::vector<std::int64_t> seqstarts, kvstarts, start_positions, blocks;

    Step(const Setting& setting, std::int64_t new_tokens, std::int64_t past, Rng& rng)
        : tokens(new_tokens), start_pos(past), num_heads(kKvHeads * setting.group) {
        const int t1 = setting.spec("KeyValueCache").t1;
        query = normals(t1, {kBatch * tokens, num_heads, kDim}, rng);
        key = normals(t1, {kBatch * tokens, kKvHeads, kDim}, rng);
        value = normals(t1, {kBatch * tokens, kKvHeads, kDim}, rng);
        loaded_key = dense(t1, {kBatch * keys(), kKvHeads, kDim});
        loaded_value = dense(t1, {kBatch * keys(), kKvHeads, kDim});
        attn_output = dense(t1, {kBatch * tokens, num_heads, kDim});
        for (std::int64_t b = 0; b <= kBatch; ++b) {
            seqstarts.push_back(b * tokens);
            kvstarts.push_back(b * keys());
        }
        start_positions.assign(kBatch, start_pos);
        blocks.resize(kBatch);
        std::iota(blocks.begin(), blocks.end(), 0);
    }
    std::int64_t keys() const { return start_pos + tokens; }
    std::int64_t kv_head(std::int64_t h) const { return h / (num_heads / kKvHeads); }

    /// As section 10 maps it.
    Bound bound(const kvjit_spec& spec, const Cache& cache) const {
        Bound bound{.spec = spec, .batch = {}, .tensors = {}, .layer = kLayer};
        kvjit_batch_init(&bound.batch);
        kvjit_tensors_init(&bound.tensors);
        bound.batch.batch_size = kBatch;
        bound.batch.num_kv_heads = kKvHeads;
        bound.batch.num_layers = kLayers;
        bound.batch.num_blocks = kMaxBatch;
        bound.batch.max_tokens = cache.codes.max_seq;
        bound.batch.seqstarts = seqstarts.data();
        bound.batch.kvstarts = kvstarts.data();
        bound.batch.start_pos = start_positions.data();
        bound.batch.max_seqlen = tokens;
        bound.batch.max_kvlen = keys();
        std::int64_t* const entries = const_cast<std::int64_t*>(blocks.data());
        bound.batch.cachestarts = kvjit_tensor_contiguous(entries, KVJIT_I64, 1, &kBatch);
        bound.tensors.current_key = key.view();
        bound.tensors.current_value = value.view();
        cache.show(bound.tensors);
        return bound;
    }
};

// ---- The definition ------------------------------------------------------------------------------------------------

void store(const Step& step, Cache& cache) {
    std::vector<double> row(kDim);
    each_row(step.start_pos, step.keys(), [&](std::int64_t b, std::int64_t part, std::int64_t s, std::int64_t g) {
        const Strided& from = (part == 0 ? step.key : step.value).strided();
        for (std::int64_t d = 0; d < kDim; ++d)
            row[static_cast<std::size_t>(d)] = from.at(b * step.tokens + s - step.start_pos, g, d);
        cache.store(b, part, s, g, row);
    });
}

/// key (part 0) or value (1), (B, start_pos + S, Hkv, D), as float64.
std::vector<double> loaded(const Step& step, const Cache& cache, std::int64_t part) {
    std::vector<double> numbers;
    each_row(0, step.keys(), [&](std::int64_t b, std::int64_t row_part, std::int64_t s, std::int64_t g) {
        for (std::int64_t d = 0; d < kDim && row_part == part; ++d) numbers.push_back(cache.load(b, part, s, g, d));
    });
    return numbers;
}

/// e^score of new token i of sequence b with each key that it sees, at query head h: causal, keys 0..start_pos + i.
std::vector<double> weights(const Step& step, const Cache& cache, std::int64_t b, std::int64_t i, std::int64_t h) {
    std::vector<double> weights;
    for (std::int64_t j = 0; j <= step.start_pos + i; ++j) {
        double dot = 0;
        for (std::int64_t d = 0; d < kDim; ++d)
            dot += step.query.strided().at(b * step.tokens + i, h, d) * cache.load(b, 0, j, step.kv_head(h), d);
        weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(kDim))));
    }
    return weights;
}

std::vector<double> attention(const Step& step, const Cache& cache) {
    std::vector<double> numbers;
    for (std::int64_t row = 0; row < kBatch * step.tokens * step.num_heads; ++row) {
        const std::int64_t h = row % step.num_heads, i = row / step.num_heads % step.tokens;
        const std::int64_t b = row / step.num_heads / step.tokens;
        const std::vector<double> seen = weights(step, cache, b, i, h);
        const double sum = std::accumulate(seen.begin(), seen.end(), 0.0);
        for (std::int64_t d = 0; d < kDim; ++d) {
            double output = 0;
            for (std::size_t j = 0; j < seen.size(); ++j)
                output += seen[j] / sum * cache.load(b, 1, static_cast<std::int64_t>(j), step.kv_head(h), d);
            numbers.push_back(output);
        }
    }
    return numbers;
}

// ---- Against it ----------------------------------------------------------------------------------------------------

/// Rounded to the tensor's type, which is what a loaded element is.
std::vector<double> rounded(const std::vector<double>& numbers, int dtype) {
    Placed tensor = dense(dtype, {std::ssize(numbers)});
    std::size_t next = 0;
    tensor.fill([&] { return numbers[next++]; });
    return numbers_of(tensor);
}

void run_key_value_cache(const Setting& setting, const Step& step, const Cache& cache, const Cache& expected) {
    Bound bound = step.bound(setting.spec("KeyValueCache"), cache);
    bound.tensors.key = step.loaded_key.view();
    bound.tensors.value = step.loaded_value.view();
    REQUIRE(run_bound(bound, {}) == "");
    CHECK(cache == expected);
    const int t1 = bound.spec.t1;
    CHECK(numbers_of(step.loaded_key) == rounded(loaded(step, expected, 0), t1));
    CHECK(numbers_of(step.loaded_value) == rounded(loaded(step, expected, 1), t1));
}

void run_attention(const Setting& setting, const Step& step, const Cache& cache, const Cache& expected) {
    Bound bound = step.bound(setting.spec("MultiHeadCacheAttention"), cache);
    bound.tensors.query = step.query.view();
    bound.tensors.attn_output = step.attn_output.view();
    REQUIRE(run_bound(bound, {}) == "");
    CHECK(cache == expected);
    const double tolerance = tolerance_of(bound.spec.t1);
    CHECK(compare_close("attn_output", numbers_of(step.attn_output), attention(step, expected), tolerance) == "");
}

/// Programs that the engine has got from anywhere.
std::int64_t programs_made() {
    kvjit_engine_stats stats;
    kvjit_engine_stats_init(&stats);
    kvjit_engine_get_stats(shared_engine(), &stats);
    return stats.compiles + stats.disk_hits + stats.bundle_hits;
}

const std::vector<Setting> kSettings = {
    {"pmx:static:NL2THD", false, "t1=f32", 1},
    {"pmx:static:NL2THD", false, "t1=f16", 4},
    {"pmx:static:NL2THD", false, "t1=f32,quant_bit=8", 3},
    {"pmx:static:NL2THD", false, "t1=f16,quant_bit=8", 1},
    {"pmx:static:LN2HTD", true, "t1=f32", 4},
    {"pmx:static:LN2HTD", true, "t1=f16", 1},
    {"pmx:static:LN2HTD", true, "t1=f32,quant_bit=8", 1},
    {"pmx:static:LN2HTD", true, "t1=f16,quant_bit=8", 2},
};

template <class Body>
void each_setting(Body body) {
    for (const Setting& setting : kSettings) {
        INFO("layout=", setting.layout, ",", setting.types, ",group=", setting.group, " --seed ", options().seed);
        body(setting, Rng(options().seed));
    }
}

TEST_CASE("PMX's static-batch operators: a prompt, tokens one by one, a longer piece") {
    each_setting([](const Setting& setting, Rng rng) {
        Cache expected(setting, kRoom), by_key_value_cache(setting, kRoom), fused(setting, kRoom);
        std::int64_t past = 0;
        for (const std::int64_t tokens : {7, 1, 1, 1, 20, 1}) {
            CAPTURE(past);
            const Step step(setting, tokens, past, rng);
            store(step, expected);
            run_key_value_cache(setting, step, by_key_value_cache, expected);
            run_attention(setting, step, fused, expected);
            past += tokens;
        }
    });
}

TEST_CASE("PMX's static-batch operators: sequences' memory grows, and nothing is compiled for it") {
    each_setting([](const Setting& setting, Rng rng) {
        const kvjit_spec spec = setting.spec("MultiHeadCacheAttention");
        REQUIRE(kvjit_engine_prepare(shared_engine(), &spec, 1, chosen_target().get(), nullptr, nullptr) == KVJIT_OK);
        const std::int64_t made = programs_made();
        std::int64_t past = 0;
        Cache expected(setting, 5), cache(setting, 5);
        for (const std::int64_t room : {5, 6, 17, 40}) {
            CAPTURE(room);
            expected.grow(room, past);
            cache.grow(room, past);
            const Step step(setting, room - past, past, rng);
            store(step, expected);
            run_attention(setting, step, cache, expected);
            past = room;
            CHECK(programs_made() == made);
        }
    });
}

}  // namespace
}  // namespace kvjit::test
