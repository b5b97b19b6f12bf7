// The loops that measure a GPU's limits do the work that they are taken for.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "limits/cuda/loops_ptx.h"
#include "ptx/machine/grid.h"
#include "ptx/machine/parser.h"

namespace kvjit::ptx {
namespace {

constexpr unsigned kBlocks = 3;
constexpr std::size_t kThreads = kBlocks * limits::kLoopThreads;

/// Runs one of the kernels over `memory`: what each thread left.
template <class Word>
std::vector<Word> run_loop(const char* name, const std::vector<u32>& memory, u32 rounds, u32 turns) {
    std::vector<Word> sums(kThreads);
    const auto begin = [](const auto& words) { return reinterpret_cast<u64>(words.data()); };
    const limits::LoopParameters parameters = {begin(memory), begin(sums), rounds, turns, 0.5F, 1};
    Launch launch{kBlocks, 1, limits::kLoopThreads, 0, {}};
    launch.parameters.resize(sizeof parameters);
    std::memcpy(launch.parameters.data(), &parameters, sizeof parameters);
    for (const Kernel& kernel : parse_module(limits::loops_ptx())) {
        if (kernel.name != name) continue;
        std::vector<Range> reachable = {{begin(memory), begin(memory) + 4 * memory.size()},
                                        {begin(sums), begin(sums) + 4 * sums.size()}};
        std::ranges::sort(reachable, {}, &Range::begin);
        run_grid(kernel, launch, std::move(reachable), Options());
        return sums;
    }
    FAIL("no kernel ", std::string(name));
    return {};
}

TEST_CASE("the loop that reads memory reads all of it, as often as it is told") {
    constexpr u32 kTurns = 2, kRounds = 3;
    std::vector<u32> memory(kThreads * kTurns * limits::kLoads * limits::kLoadBytes / sizeof(u32));
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<u32>(i * i + 1);
    const auto sums = run_loop<u32>(limits::kReadKernel, memory, kRounds, kTurns);
    CHECK(std::reduce(sums.begin(), sums.end()) == kRounds * std::reduce(memory.begin(), memory.end()));
}

TEST_CASE("the loop of multiply-adds makes every link of every chain") {
    for (const u32 rounds : {1U, 2U, 3U}) {
        const auto sums = run_loop<float>(limits::kMultiplyAddKernel, {0}, rounds, 0);
        double expected = 0;  // x / 2 + 1 keeps 2, and halves what x is more
        for (int chain = 0; chain < limits::kChains; ++chain) {
            expected += 2 + (chain - 2) * std::exp2(-static_cast<double>(rounds * limits::kLinks));
        }
        for (const float sum : sums) CHECK(sum == expected);
    }
}

TEST_CASE("the loop of products makes every one of every chain") {
    constexpr u32 kTwos = 0x40004000;  // two float16 numbers: 16 products of 4 for an element
    const std::vector<u32> factors(std::size_t{limits::kLoopThreads} * limits::kFactorBytes / 4, kTwos);
    for (const u32 rounds : {1U, 3U}) {
        const auto sums = run_loop<float>(limits::kMatricesKernel, factors, rounds, 0);
        const double products = 64.0 * rounds * limits::kMatrixLinks;
        double expected = 0;  // of four elements a chain
        for (int chain = 0; chain < limits::kMatrixChains; ++chain) expected += 4 * (chain + products);
        for (const float sum : sums) CHECK(sum == expected);
    }
}

}  // namespace
}  // namespace kvjit::ptx
