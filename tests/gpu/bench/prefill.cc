// Prefill over packed keys and values: bound by arithmetic, so held against tensor cores' alone in the same rounds. The
// shapes are those of published figures: 16k tokens in all, 2048 elements of all heads of a token, as many key heads as
// query heads.
#include <list>

#include "gpu/bench/setup.h"

namespace kvjit::bench {
namespace {

constexpr std::int64_t kTokens = 16384, kWidth = 2048;
constexpr double kSampleUs = 3000;
constexpr double kGuess = 4e8;  // operations a microsecond: how fast the guess of a call's time takes arithmetic to be

struct Shape {
    std::int64_t length, dim;
    bool causal;

    std::int64_t heads() const { return kWidth / dim; }
    std::int64_t sequences() const { return kTokens / length; }
    std::string spec() const {
        return "op=MultiHeadAttention,t1=f16,group=1,head_dim=" + std::to_string(dim) +
               ",is_causal=" + (causal ? "1" : "0");
    }
    std::string text() const {
        return "S " + std::to_string(length) + ", D " + std::to_string(dim) + (causal ? ", causal" : "");
    }
    /// Two products of `dim` multiply-adds for each pair of a row and a key; half of the pairs where causal.
    double operations() const {
        const double pairs = static_cast<double>(kTokens) * static_cast<double>(length);
        return 4.0 * pairs * static_cast<double>(kWidth) / (causal ? 2 : 1);
    }
    std::int64_t calls() const { return 1 + static_cast<std::int64_t>(kSampleUs / (operations() / kGuess)); }
};

struct Memory {
    explicit Memory(const Setup& setup)
        : query(normal_halves(setup.gpu, kBytes)),
          key(normal_halves(setup.gpu, kBytes)),
          value(normal_halves(setup.gpu, kBytes)),
          output(setup.gpu, kBytes) {}
    static constexpr std::size_t kBytes = kTokens * kWidth * 2;
    gpu::DeviceMemory query, key, value, output;
};

Tensors tensors_of(const Memory& memory, const Shape& shape) {
    const auto view = [&](const gpu::DeviceMemory& part) {
        return Tensor(part.data(), KVJIT_F16, {kTokens, shape.heads(), shape.dim});
    };
    Tensors tensors;
    tensors.query = view(memory.query);
    tensors.key = view(memory.key);
    tensors.value = view(memory.value);
    tensors.attn_output = view(memory.output);
    return tensors;
}

class Contestant {
public:
    Contestant(const Setup& setup, const Memory& memory, const Shape& shape)
        : starts_(indices<std::int64_t>(setup.gpu, arithmetic(shape.sequences() + 1, 0, shape.length))),
          plan_(plan_for(setup, shape.spec(), batch(shape))),
          graph_(setup.stream, [&] {
              for (std::int64_t i = 0; i < shape.calls(); ++i) expect_done(plan_.run(tensors_of(memory, shape)));
          }) {}
    const gpu::Graph& graph() const { return graph_; }

private:
    Batch batch(const Shape& shape) const {
        Batch batch;
        batch.batch_size = shape.sequences();
        batch.num_heads = shape.heads();
        batch.max_seqlen = batch.max_kvlen = shape.length;
        batch.seqstarts = batch.kvstarts = static_cast<const std::int64_t*>(starts_.data());
        return batch;
    }

    gpu::DeviceMemory starts_;
    Plan plan_;
    gpu::Graph graph_;
};

void bench_shapes(const Setup& setup, const Memory& memory, const std::vector<Shape>& shapes) {
    Contest contest(setup.stream);
    contest.enter(setup.limits.multiply_matrices());
    std::list<Contestant> contestants;
    std::vector<Shape> entered;
    for (const Shape& shape : shapes) {
        const std::string what = "prefill " + shape.text();
        if (!attempt(setup, what, [&] { contestants.emplace_back(setup, memory, shape); })) continue;
        const Contestant& contestant = contestants.back();
        contest.enter([&] { contestant.graph().launch(setup.stream); }, static_cast<double>(shape.calls()));
        entered.push_back(shape);
    }
    const auto times = contest.run(setup.rounds());
    const std::vector<double> limits = rates_of(setup.limits.multiply_matrices(), times[0]);
    for (std::size_t i = 0; i < entered.size(); ++i) {
        setup.report.add(
            {"prefill", entered[i].text(), "f16", "kvjit", times[i + 1], 0, entered[i].operations(), limits});
    }
}

}  // namespace

void bench_prefill(const Setup& setup) {
    if (!fits(setup, "prefill", 4.0 * Memory::kBytes)) return;
    const Memory memory(setup);
    const auto lengths =
        setup.quick ? std::vector<std::int64_t>{2048, 16384} : std::vector<std::int64_t>{1024, 2048, 4096, 8192, 16384};
    for (const std::int64_t dim : {64, 128, 256}) {
        std::vector<Shape> shapes;
        for (const std::int64_t length : lengths) {
            for (const bool causal : {true, false}) shapes.push_back({length, dim, causal});
        }
        bench_shapes(setup, memory, shapes);
    }
}

}  // namespace kvjit::bench
