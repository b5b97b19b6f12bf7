// Decode: bound by memory, so held against the device's own copy, turn by turn in the same rounds.
#include <algorithm>
#include <cmath>
#include <list>

#include "gpu/bench/decode_case.h"
#include "gpu/bench/setup.h"

namespace kvjit::bench {
namespace {

constexpr double kTimesL2 = 4;         // caches that are read in turn are this much larger than L2 together
constexpr double kSampleUs = 2000;     // a sample is about so long
constexpr double kGuessBytesUs = 3e6;  // how fast the guess of a call's time takes memory to be
constexpr double kGuessLaunchUs = 4;
constexpr int kMostCalls = 256;
constexpr double kSmallScale = 0.01;

/// The arrays that all variants of one shape share.
struct Memory {
    Memory(const Setup& setup, const Shape& shape, std::size_t cache_bytes, std::size_t scale_bytes)
        : cache(normal_halves(setup.gpu, cache_bytes)),
          scale(normal_halves(setup.gpu, scale_bytes, kSmallScale)),
          inputs(normal_halves(setup.gpu, static_cast<std::size_t>(shape.rows() * kHeads * kDim * 2))),
          output(setup.gpu, inputs.size()),
          seqstarts(indices<std::int64_t>(setup.gpu, arithmetic(shape.sequences() + 1, 0, shape.new_tokens))),
          kvstarts(indices<std::int64_t>(setup.gpu, key_starts(shape))),
          start_pos(indices<std::int64_t>(setup.gpu, pasts(shape))),
          page_table(indices<std::int64_t>(setup.gpu, table(shape, kPage, kPage))),
          block_table(indices<std::int32_t>(setup.gpu, table(shape, kBlock, 1))) {}

    gpu::DeviceMemory cache, scale, inputs, output, seqstarts, kvstarts, start_pos, page_table, block_table;
};

const std::int64_t* int64s(const gpu::DeviceMemory& memory) {
    return static_cast<const std::int64_t*>(memory.data());
}

Batch batch_of(const Memory& memory, const Shape& shape, const Variant& variant) {
    Batch batch;
    batch.batch_size = shape.sequences();
    batch.num_heads = kHeads;
    batch.num_kv_heads = shape.kv_heads;
    batch.decoding_batches = shape.new_tokens == 1 ? shape.sequences() : 0;
    batch.max_seqlen = shape.new_tokens;
    batch.max_kvlen = shape.longest();
    batch.seqstarts = int64s(memory.seqstarts);
    batch.kvstarts = int64s(memory.kvstarts);
    batch.start_pos = int64s(memory.start_pos);
    const std::int64_t columns = Shape::pages_of(shape.longest(), variant.page());
    if (variant.blocks) {
        batch.num_blocks = variant.pages(shape);
        batch.cachestarts = Tensor(memory.block_table.data(), KVJIT_I32, {shape.sequences(), columns});
    } else {
        batch.max_tokens = variant.pages(shape) * kPage;
        batch.cachestarts = Tensor(memory.page_table.data(), KVJIT_I64, {shape.sequences(), columns});
    }
    return batch;
}

Tensor cache_tensor(const Variant& variant, const Shape& shape, void* data, kvjit_dtype dtype, std::int64_t row) {
    if (variant.blocks) return {data, dtype, {variant.pages(shape), 2, kBlock, shape.kv_heads, row}};
    return {data, dtype, {1, 2, shape.kv_heads, variant.pages(shape) * kPage, row}};
}

/// Tensors of the call on cache number `copy`.
Tensors tensors_of(const Memory& memory, const Shape& shape, const Variant& variant, std::int64_t copy) {
    const Elements& elements = variant.elements;
    const std::int64_t rows = copy * variant.rows(shape);
    Tensors tensors;
    tensors.query = Tensor(memory.inputs.data(), KVJIT_F16, {shape.rows(), kHeads, kDim});
    tensors.attn_output = Tensor(memory.output.data(), KVJIT_F16, {shape.rows(), kHeads, kDim});
    tensors.cache = cache_tensor(variant, shape, static_cast<char*>(memory.cache.data()) + rows * elements.row_bytes,
                                 elements.dtype, elements.row_elements);
    if (elements.scales != 0) {
        char* scales = static_cast<char*>(memory.scale.data()) + rows * elements.scales * 2;
        tensors.scale = cache_tensor(variant, shape, scales, KVJIT_F16, elements.scales);
    }
    if (!variant.stores) return tensors;
    tensors.current_key = Tensor(memory.inputs.data(), KVJIT_F16, {shape.rows(), shape.kv_heads, kDim});
    tensors.current_value = tensors.current_key;
    return tensors;
}

std::int64_t copies(const Setup& setup, const Shape& shape, const Variant& variant) {
    const double enough = kTimesL2 * setup.gpu.attribute(gpu::kL2CacheBytes);
    return static_cast<std::int64_t>(std::ceil(std::max(1.0, enough / variant.bytes(shape))));
}

/// Calls of a sample: each cache once at least.
std::int64_t calls(const Setup& setup, const Shape& shape, const Variant& variant) {
    const double guess = kGuessLaunchUs + variant.bytes(shape) / kGuessBytesUs;
    const auto wanted = static_cast<std::int64_t>(std::ceil(kSampleUs / guess));
    return std::max(copies(setup, shape, variant), std::min<std::int64_t>(wanted, kMostCalls));
}

/// A plan, and a graph of calls that go through all caches in turn.
class Contestant {
public:
    Contestant(const Setup& setup, const Memory& memory, const Shape& shape, const Variant& variant)
        : calls_(calls(setup, shape, variant)),
          plan_(plan_for(setup, variant.spec(shape), batch_of(memory, shape, variant), variant.check)),
          graph_(setup.stream, [&] {
              for (std::int64_t i = 0; i < calls_; ++i) {
                  const std::int64_t copy = i % copies(setup, shape, variant);
                  expect_done(plan_.run(tensors_of(memory, shape, variant, copy)));
              }
          }) {}
    const gpu::Graph& graph() const { return graph_; }
    double calls_in_graph() const { return static_cast<double>(calls_); }
    /// Throws where the calls found something wrong, and so did nothing.
    void finish() { expect_done(plan_.synchronize()); }

private:
    std::int64_t calls_;
    Plan plan_;
    gpu::Graph graph_;
};

/// What checking adds to the same call unchecked, round by round.
void report_check(const Setup& setup, const Shape& shape, const std::vector<Variant>& variants, std::size_t checked,
                  const std::vector<std::vector<double>>& times) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
        if (!variants[i].is_unchecked(variants[checked])) continue;
        std::vector<double> added = times[checked + 1];
        for (std::size_t round = 0; round < added.size(); ++round) added[round] -= times[i + 1][round];
        setup.report.add({"check adds", shape.text, variants[i].table(), "kvjit", added, 0, 0, {}});
    }
}

/// `times`: the copy's, then those of the variants.
void report_shape(const Setup& setup, const Shape& shape, const std::vector<Variant>& variants,
                  const std::vector<std::vector<double>>& times) {
    std::vector<double> copy_rates;
    for (const double time : times[0]) copy_rates.push_back(setup.copy.rate(time));
    for (std::size_t i = 0; i < variants.size(); ++i) {
        if (variants[i].is_checked()) {
            report_check(setup, shape, variants, i, times);
            continue;
        }
        setup.report.add({variants[i].stores ? "store+decode" : "decode", shape.text, variants[i].name(), "kvjit",
                          times[i + 1], variants[i].bytes(shape), 0, copy_rates});
    }
}

void measure(const Setup& setup, const Shape& shape, const std::vector<Variant>& variants) {
    std::size_t cache_bytes = 0, scale_bytes = 16;
    for (const Variant& variant : variants) {
        const auto rows = static_cast<std::size_t>(copies(setup, shape, variant) * variant.rows(shape));
        cache_bytes = std::max(cache_bytes, rows * static_cast<std::size_t>(variant.elements.row_bytes));
        scale_bytes = std::max(scale_bytes, rows * static_cast<std::size_t>(variant.elements.scales) * 2);
    }
    if (!fits(setup, "decode " + shape.text, static_cast<double>(cache_bytes + scale_bytes))) return;
    const Memory memory(setup, shape, cache_bytes, scale_bytes);
    Contest contest(setup.stream);
    contest.enter([&] { setup.copy.enqueue(setup.stream); }, CopyYardstick::kCopies);
    std::list<Contestant> contestants;
    std::vector<Variant> entered;
    for (const Variant& variant : variants) {
        const std::string what = "decode " + shape.text + ", " + variant.name();
        if (!attempt(setup, what, [&] { contestants.emplace_back(setup, memory, shape, variant); })) continue;
        const Contestant& contestant = contestants.back();
        contest.enter([&] { contestant.graph().launch(setup.stream); }, contestant.calls_in_graph());
        entered.push_back(variant);
    }
    const auto times = contest.run(setup.rounds());
    for (Contestant& contestant : contestants) contestant.finish();
    report_shape(setup, shape, entered, times);
}

void bench_shape(const Setup& setup, const Shape& shape, const std::vector<Variant>& variants) {
    attempt(setup, "decode " + shape.text, [&] { measure(setup, shape, variants); });
}

}  // namespace

void bench_decode(const Setup& setup) {
    const auto sequences = setup.quick ? std::vector<std::int64_t>{1, 64} : std::vector<std::int64_t>{1, 16, 64, 256};
    const auto keys =
        setup.quick ? std::vector<std::int64_t>{1024, 8192} : std::vector<std::int64_t>{1024, 8192, 32768};
    for (const std::int64_t b : sequences) {
        for (const std::int64_t n : keys) bench_shape(setup, even(b, n), all_variants());
    }
    const Variant f16{kF16, false, false}, one_scale{kOneScale, false, false};
    bench_shape(setup, even(16, 8192), {one_scale});
    for (const Shape& shape : engine_shapes()) bench_shape(setup, shape, {f16, one_scale});
}

}  // namespace kvjit::bench
