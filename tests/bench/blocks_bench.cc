// Blocks copied from one pool to another, and exchanged: held against memcpy of as many bytes, turn by turn in the same
// run.
#include "kvjit/blocks.hpp"

#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "setup.h"
#include "yardstick.h"

namespace kvjit::bench {
namespace {

constexpr std::int64_t kLayers = 32, kBlockTokens = 16;
constexpr std::int64_t kBlockBytes = 2 * kLayers * kBlockTokens * kKvHeads * kDim * 2;  // float16

/// As many blocks as the benchmarks' memory has room for, in random places.
std::int64_t block_count() {
    return static_cast<std::int64_t>(bytes_beyond_cache() / 2) / kBlockBytes;
}

/// A pool of blocks of Llama 3 8B's shape.
class Pool {
public:
    explicit Pool(const char* layout) : memory_(static_cast<std::size_t>(block_count() * kBlockBytes), 1) {
        spec_ = *KernelSpec::parse(
            std::string("op=KeyValueCache,head_dim=128,t1=f16,cache_mode=block_table,page_size=16,") +
            "layout=" + layout);
        batch_.num_kv_heads = kKvHeads;
        batch_.num_layers = kLayers;
        batch_.num_blocks = block_count();
        tensors_.cache = test::dense_tensor(memory_.data(), KVJIT_F16, test::cache_shape(spec_, batch_, layout, kDim));
    }
    Pool(const Pool&) = delete;

    Blocks blocks() const { return {spec_, batch_, tensors_}; }

private:
    std::vector<unsigned char> memory_;
    KernelSpec spec_;
    Batch batch_;
    Tensors tensors_;
};

/// All blocks, in any order.
std::vector<std::int64_t> shuffled_ids(unsigned seed) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(block_count()));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(seed));
    return ids;
}

struct Config {
    const char* from;
    const char* to;
    bool swap;
};

void move_all(benchmark::State& state, Config config) {
    const Pool from(config.from), to(config.to);
    const std::vector<std::int64_t> from_ids = shuffled_ids(1), to_ids = shuffled_ids(2);
    BlocksOptions options;
    options.num_threads = static_cast<std::uint32_t>(thread_count());
    const auto operation = config.swap ? swap_blocks : copy_blocks;
    // A swap writes both.
    const double bytes = static_cast<double>(block_count() * kBlockBytes) * (config.swap ? 2 : 1);
    run_beside(state, {kCopy}, bytes, [&] {
        return operation(from.blocks(), to.blocks(), from_ids.data(), to_ids.data(), block_count(), options);
    });
}

const bool kRegistered = [] {
    for (const Config& config :
         {Config{"N2LTHD", "N2LTHD", false}, Config{"LNTH2D", "LNTH2D", false}, Config{"LHNT2D", "LHNT2D", false},
          Config{"N2LTHD", "NL2HTD", false}, Config{"N2LTHD", "N2LTHD", true}, Config{"LHNT2D", "LHNT2D", true}}) {
        const std::string name =
            std::string("BM_blocks/") + (config.swap ? "swap/" : "copy/") + config.from + "/" + config.to;
        benchmark::RegisterBenchmark(name.c_str(), move_all, config)
            ->Unit(benchmark::kMillisecond)
            ->UseManualTime()
            ->MinTime(0.5);
    }
    return true;
}();

}  // namespace
}  // namespace kvjit::bench
