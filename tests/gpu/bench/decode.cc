// Decode: bound by memory, so held against a loop that only reads it, turn by turn in the same rounds.
#include <algorithm>
#include <cmath>
#include <list>

#include "call/call.h"
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

/// The tensors that all variants of one shape share.
struct Memory {
    Memory(const Setup& setup, const Shape& shape, std::size_t cache_bytes, std::size_t scale_bytes)
        : cache(normal_halves(setup.gpu, cache_bytes)),
          scale(normal_halves(setup.gpu, scale_bytes, kSmallScale)),
          inputs(normal_halves(setup.gpu, static_cast<std::size_t>(shape.rows() * kHeads * kDim * 2))),
          output(setup.gpu, inputs.size()) {}

    gpu::DeviceMemory cache, scale, inputs, output;
};

/// Rows of cache number `copy`, of those that lie in `all` one after the other.
kvjit_tensor rows_of(const gpu::DeviceMemory& all, const test::IndexArrays& arrays, const test::RowType& row,
                     std::int64_t copy) {
    const kvjit_spec& spec = arrays.spec;
    const test::Numbers shape = test::cache_shape(spec, arrays.batch, spec.layout, row.elements);
    kvjit_tensor rows = test::dense_tensor(nullptr, row.dtype, shape);
    rows.data = static_cast<char*>(all.data()) + static_cast<std::size_t>(copy) * test::bytes_of(rows).size();
    return rows;
}

/// Tensors of the call on cache number `copy`.
kvjit_tensors tensors_of(const Memory& memory, const test::IndexArrays& arrays, bool stores, std::int64_t copy) {
    const std::int64_t rows = arrays.seqstarts.back();
    Tensors tensors;
    tensors.query = Tensor(memory.inputs.data(), KVJIT_F16, {rows, kHeads, kDim});
    tensors.attn_output = Tensor(memory.output.data(), KVJIT_F16, {rows, kHeads, kDim});
    tensors.cache = rows_of(memory.cache, arrays, test::code_row(arrays.spec), copy);
    if (arrays.spec.quant_bit != 0) tensors.scale = rows_of(memory.scale, arrays, test::scale_row(arrays.spec), copy);
    if (!stores) return tensors;
    tensors.current_key = Tensor(memory.inputs.data(), KVJIT_F16, {rows, arrays.batch.num_kv_heads, kDim});
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
          pieces_(setup.gpu),
          arrays_(arrays_of(shape, variant)),
          plan_(plan_for(setup, variant.spec(shape), placed_batch(), variant.check)),
          graph_(setup.stream, [&] {
              const std::int64_t caches = copies(setup, shape, variant);
              for (std::int64_t i = 0; i < calls_; ++i)
                  expect_done(plan_.run(tensors_of(memory, arrays_, variant.stores, i % caches)));
          }) {}
    const gpu::Graph& graph() const { return graph_; }
    double calls_in_graph() const { return static_cast<double>(calls_); }
    /// Throws where the calls found something wrong, and so did nothing.
    void finish() { expect_done(plan_.synchronize()); }

private:
    const kvjit_batch& placed_batch() {
        arrays_.bind([this](const void* data, std::size_t bytes) { return pieces_.put(data, bytes); });
        return arrays_.batch;
    }

    std::int64_t calls_;
    DevicePieces pieces_;
    test::IndexArrays arrays_;
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

/// `times`: the limit's, then those of the variants.
void report_shape(const Setup& setup, const Shape& shape, const std::vector<Variant>& variants,
                  const std::vector<std::vector<double>>& times) {
    const std::vector<double> reading = rates_of(setup.limits.read(), times[0]);
    for (std::size_t i = 0; i < variants.size(); ++i) {
        if (variants[i].is_checked()) {
            report_check(setup, shape, variants, i, times);
            continue;
        }
        setup.report.add({variants[i].stores ? "store+decode" : "decode", shape.text, variants[i].name(), "kvjit",
                          times[i + 1], variants[i].bytes(shape), 0, reading});
    }
}

void measure(const Setup& setup, const Shape& shape, const std::vector<Variant>& variants) {
    std::size_t cache_bytes = 0, scale_bytes = 16;
    for (const Variant& variant : variants) {
        const auto caches = static_cast<std::size_t>(copies(setup, shape, variant));
        cache_bytes = std::max(cache_bytes, caches * variant.cache_bytes(shape));
        scale_bytes = std::max(scale_bytes, caches * variant.scale_bytes(shape));
    }
    if (!fits(setup, "decode " + shape.text, static_cast<double>(cache_bytes + scale_bytes))) return;
    const Memory memory(setup, shape, cache_bytes, scale_bytes);
    Contest contest(setup.stream);
    contest.enter(setup.limits.read());
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
