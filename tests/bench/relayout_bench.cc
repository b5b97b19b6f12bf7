// Relayout between two pools of blocks in memory: held against copies of the same bytes, or, where it converts, against
// a loop that only reads, turn by turn in the same run.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "setup.h"
#include "yardstick.h"

namespace kvjit::bench {
namespace {

constexpr std::int64_t kLayers = 32, kBlockTokens = 16;
/// Rows of a block's keys and values.
constexpr std::int64_t kBlockRows = kLayers * 2 * kKvHeads * kBlockTokens;

constexpr const char* kHalf = "quant_bit=0";
constexpr const char* kByte = "quant_bit=8";
constexpr const char* kByte32 = "quant_bit=8,quant_group=32";
constexpr const char* kNibble32 = "quant_bit=4,quant_group=32";

struct Case {
    const char* name;
    const char *from, *to;  // their rows
    const char *from_layout, *to_layout;
};
constexpr Case kCases[] = {
    {"f16/blocks", kHalf, kHalf, "NL2HTD", "NL2HTD"},        {"f16/layers", kHalf, kHalf, "NL2HTD", "LN2HTD"},
    {"f16/heads", kHalf, kHalf, "NL2HTD", "NLH2TD"},         {"f16/rows", kHalf, kHalf, "NL2HTD", "NL2THD"},
    {"int8/rows", kByte, kByte, "NL2HTD", "NL2THD"},         {"f16_to_int8_g8", kHalf, kByte, "NL2HTD", "NL2HTD"},
    {"f16_to_int8_g32", kHalf, kByte32, "NL2HTD", "NL2HTD"}, {"f16_to_int4_g32", kHalf, kNibble32, "NL2HTD", "NL2HTD"},
    {"int8_g8_to_f16", kByte, kHalf, "NL2HTD", "NL2HTD"},
};

/// A pool that has been written to.
class Pool {
public:
    Pool(const char* rows, const std::string& layout, std::int64_t blocks)
        : spec_(test::parse_spec("op=KeyValueCache,head_dim=128,t1=f16,cache_mode=block_table,page_size=16,layout=" +
                                 layout + "," + rows)) {
        batch_.num_blocks = blocks;
        batch_.num_layers = kLayers;
        batch_.num_kv_heads = kKvHeads;
        tensors_.cache = tensor(test::code_row(spec_), codes_);
        if (spec_.quant_bit != 0) tensors_.scale = tensor(test::scale_row(spec_), scales_);
    }
    Pool(const Pool&) = delete;

    const kvjit_spec& spec() const { return spec_; }
    const Tensors& tensors() const { return tensors_; }
    double bytes() const { return static_cast<double>(2 * (codes_.size() + scales_.size())); }

private:
    kvjit_tensor tensor(const test::RowType& row, std::vector<std::uint16_t>& memory) const {
        kvjit_tensor made =
            test::dense_tensor(nullptr, row.dtype, test::cache_shape(spec_, batch_, spec_.layout, row.elements));
        memory.assign(test::bytes_of(made).size() / 2, 0x2c00);
        made.data = memory.data();
        return made;
    }

    kvjit_spec spec_;
    Batch batch_;
    Tensors tensors_;
    std::vector<std::uint16_t> codes_, scales_;
};

/// Block b of a pool goes to block to[b] of the other: a sequence a block, all of whose tokens are copied.
struct Blocks {
    explicit Blocks(std::int64_t count) : starts(static_cast<std::size_t>(count + 1)) {
        for (std::int64_t b = 0; b <= count; ++b) starts[static_cast<std::size_t>(b)] = b * kBlockTokens;
        from.resize(static_cast<std::size_t>(count));
        std::iota(from.begin(), from.end(), 0);
        to = from;
        std::shuffle(to.begin(), to.end(), std::minstd_rand(1));
    }
    Batch batch(const std::vector<std::int64_t>& ids) const {
        Batch batch;
        batch.batch_size = batch.num_blocks = std::ssize(ids);
        batch.num_kv_heads = kKvHeads;
        batch.num_layers = kLayers;
        batch.seqstarts = batch.kvstarts = starts.data();
        batch.cachestarts = Tensor(ids.data(), KVJIT_I64, {std::ssize(ids), 1});
        return batch;
    }

    std::vector<std::int64_t> starts, from, to;
};

/// The codes of all blocks by memcpy, in pieces as long as both pools have them together, in the destination's order:
/// the same addresses without a relayout's lists.
class PieceCopy {
public:
    PieceCopy(const Case& which, const kvjit_tensor& from, const kvjit_tensor& to, const Blocks& blocks)
        : from_(from), to_(to), blocks_(blocks), size_(from.dtype == KVJIT_F16 ? 2 : 1), piece_(kDim * size_) {
        const std::string_view from_layout = which.from_layout, to_layout = which.to_layout;
        from_block_ = from.strides[from_layout.find('N')] * size_;
        to_block_ = to.strides[to_layout.find('N')] * size_;
        for (std::size_t i = to_layout.size() - 1; i-- > 0;) {
            const char axis = to_layout[i];
            if (axis != 'N') add({to.shape[i], from.strides[from_layout.find(axis)] * size_, to.strides[i] * size_});
        }
    }

    std::int64_t piece() const { return piece_; }
    /// Bytes a second.
    double measure() const {
        const auto start = std::chrono::steady_clock::now();
        {
            std::vector<std::jthread> threads;
            for (int k = 1; k < thread_count(); ++k) threads.emplace_back([this, k] { copy(k); });
            copy(0);
        }
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        return static_cast<double>(std::ssize(blocks_.to) * from_block_) / seconds.count();
    }

private:
    struct Step {
        std::int64_t count, from, to;
    };
    void add(const Step& step) {
        if (steps_.empty() && step.from == piece_ && step.to == piece_) {
            piece_ *= step.count;
        } else {
            steps_.push_back(step);
        }
    }
    void copy(int k) const {
        const std::int64_t count = std::ssize(blocks_.to), threads = thread_count();
        for (std::int64_t b = count * k / threads; b < count * (k + 1) / threads; ++b) {
            copy_axes(steps_.size(), static_cast<char*>(to_.data) + blocks_.to[static_cast<std::size_t>(b)] * to_block_,
                      static_cast<const char*>(from_.data) + b * from_block_);
        }
    }
    void copy_axes(std::size_t axes, char* to, const char* from) const {
        if (axes == 0) {
            std::memcpy(to, from, static_cast<std::size_t>(piece_));
            return;
        }
        const Step& step = steps_[axes - 1];
        for (std::int64_t i = 0; i < step.count; ++i) copy_axes(axes - 1, to + i * step.to, from + i * step.from);
    }

    kvjit_tensor from_, to_;
    const Blocks& blocks_;
    std::int64_t size_, piece_, from_block_, to_block_;
    std::vector<Step> steps_;
};

void relayout(benchmark::State& state, const Case& which) {
    const std::int64_t count = static_cast<std::int64_t>(bytes_beyond_cache()) / (kBlockRows * 256) + 1;
    Pool from(which.from, which.from_layout, count), to(which.to, which.to_layout, count);
    const Blocks blocks(count);
    KernelSpec spec;
    Error error;
    if (kvjit_relayout_spec(&from.spec(), &to.spec(), &spec, error.get()) != KVJIT_OK)
        return state.SkipWithError(error.message());
    const auto kernel = shared_engine().kernel(spec);
    if (failed(state, kernel)) return;
    const Batch from_batch = blocks.batch(blocks.from), to_batch = blocks.batch(blocks.to);
    auto plan = kernel->plan(Relayout(from_batch, to_batch));
    if (failed(state, plan)) return;
    const Tensors &read = from.tensors(), &written = to.tensors();
    const auto run = [&] { return plan->relayout(read, written); };
    if (std::string_view(which.from) != which.to) return run_beside(state, {kRead}, from.bytes() + to.bytes(), run);
    const PieceCopy copy(which, read.cache, written.cache, blocks);
    state.counters["piece"] = static_cast<double>(copy.piece());
    run_beside(state, {{"copy", "GB/s", [&] { return copy.measure(); }}}, from.bytes(), run);
}

const bool kRegistered = [] {
    for (const Case& which : kCases) {
        benchmark::RegisterBenchmark(("BM_relayout/" + std::string(which.name)).c_str(), relayout, which)
            ->Unit(benchmark::kMillisecond)
            ->UseManualTime()
            ->MinTime(0.5);
    }
    return true;
}();

}  // namespace
}  // namespace kvjit::bench
