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

/// What a pool's rows are, in bytes.
struct Rows {
    const char* quantity;
    kvjit_dtype dtype;
    std::int64_t code_bytes, scale_bytes;
};
constexpr Rows kHalf = {"quant_bit=0", KVJIT_F16, 256, 0};
constexpr Rows kByte = {"quant_bit=8", KVJIT_I8, 128, 32};
constexpr Rows kByte32 = {"quant_bit=8,to_quant_group=32", KVJIT_I8, 128, 8};
constexpr Rows kNibble32 = {"quant_bit=4,to_quant_group=32", KVJIT_U8, 64, 8};

struct Case {
    const char* name;
    Rows from, to;
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
    Pool(const Rows& rows, const char* layout, std::int64_t blocks)
        : rows_(rows),
          layout_(layout),
          blocks_(blocks),
          codes_(static_cast<std::size_t>(blocks * kBlockRows * rows.code_bytes / 2), 0x3c00),
          scales_(static_cast<std::size_t>(blocks * kBlockRows * rows.scale_bytes / 2), 0x2c00) {}

    Tensors tensors() {
        Tensors all;
        all.cache = tensor(codes_.data(), rows_.dtype, rows_.code_bytes / (rows_.dtype == KVJIT_F16 ? 2 : 1));
        if (rows_.scale_bytes != 0) all.scale = tensor(scales_.data(), KVJIT_F16, rows_.scale_bytes / 2);
        return all;
    }
    double bytes() const { return static_cast<double>(blocks_ * kBlockRows * (rows_.code_bytes + rows_.scale_bytes)); }
    std::string_view layout() const { return layout_; }

private:
    std::int64_t extent(char axis) const {
        switch (axis) {
            case 'N':
                return blocks_;
            case 'L':
                return kLayers;
            case '2':
                return 2;
            case 'H':
                return kKvHeads;
            default:
                return kBlockTokens;
        }
    }
    kvjit_tensor tensor(void* data, kvjit_dtype type, std::int64_t row_elements) const {
        std::vector<std::int64_t> shape;
        for (const char axis : layout_) shape.push_back(axis == 'D' ? row_elements : extent(axis));
        return kvjit_tensor_contiguous(data, type, static_cast<std::int32_t>(shape.size()), shape.data());
    }

    Rows rows_;
    std::string_view layout_;
    std::int64_t blocks_;
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
        : from_(from), to_(to), blocks_(blocks), piece_(which.from.code_bytes) {
        size_ = which.from.dtype == KVJIT_F16 ? 2 : 1;
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
    std::int64_t piece_, size_, from_block_, to_block_;
    std::vector<Step> steps_;
};

void relayout(benchmark::State& state, const Case& which) {
    const std::int64_t count = static_cast<std::int64_t>(bytes_beyond_cache()) / (kBlockRows * 256) + 1;
    Pool from(which.from, which.from_layout, count), to(which.to, which.to_layout, count);
    const Blocks blocks(count);
    const std::string text = std::string("op=Relayout,head_dim=128,cache_mode=block_table,page_size=16,layout=") +
                             which.from_layout + ",to_layout=" + which.to_layout + "," + which.from.quantity + ",to_" +
                             which.to.quantity;
    const auto spec = KernelSpec::parse(text);
    if (failed(state, spec)) return;
    const auto kernel = shared_engine().kernel(*spec);
    if (failed(state, kernel)) return;
    const Batch from_batch = blocks.batch(blocks.from), to_batch = blocks.batch(blocks.to);
    auto plan = kernel->plan(Relayout(from_batch, to_batch));
    if (failed(state, plan)) return;
    const Tensors read = from.tensors(), written = to.tensors();
    const auto run = [&] { return plan->relayout(read, written); };
    if (std::string_view(which.from.quantity) != which.to.quantity)
        return run_beside(state, kRead, from.bytes() + to.bytes(), run);
    const PieceCopy copy(which, read.cache, written.cache, blocks);
    state.counters["piece"] = static_cast<double>(copy.piece());
    run_beside(state, {"copy", "GB/s", [&] { return copy.measure(); }}, from.bytes(), run);
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
