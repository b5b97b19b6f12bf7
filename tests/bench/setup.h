// What the benchmarks share: an engine, memory that looks like a cache, one call's arrays and tensors.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "call/call.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::bench {

/// Llama 3 8B's attention.
inline constexpr std::int64_t kHeads = 32, kKvHeads = 8, kDim = 128;

/// Threads that plans use and yardsticks, too: the cores that the process may run on (taskset).
int thread_count();

/// A folder for disk caches that ends with the process.
const std::string& scratch_folder();

/// For all benchmarks that do not time the making of kernels.
const Engine& shared_engine();

/// What a cache holds.
struct CacheKind {
    const char* name;      // "int8"
    const char* quantity;  // "quant_bit=8"
};
inline constexpr CacheKind kF16 = {"f16", "quant_bit=0"}, kInt8 = {"int8", "quant_bit=8"},
                           kInt4 = {"int4", "quant_bit=4"};

/// "op=...,head_dim=128,group=4,...". `layout` is L2HTD or TL2HD.
std::string spec_text(const char* op, const CacheKind& kind, const char* layout, bool pages);

/// One call over `layers` caches. Data is made up. The tensors of all calls of the process lie in the same memory, of
/// bytes_beyond_cache() and some more: a call that is larger is not right() and must not be run.
struct Call : test::ApiCall {
    struct Size {
        std::int64_t sequences, tokens, keys, layers;  // new tokens and keys of each sequence
        std::int64_t kv_heads = kKvHeads;
    };
    /// Without optional outputs.
    Call(const std::string& spec_text, Size call_size);

    /// Codes and scales of all keys and values, one layer.
    double layer_bytes() const;
    bool right() const;

    Size size;

private:
    std::vector<std::byte> output_;  // no call reads another one's
};

/// Several times the last-level cache: what is read in turn and is this large comes from memory.
double bytes_beyond_cache();
/// Layers that together are so large.
std::int64_t layers_beyond_cache(double layer_bytes);

/// The value that a part `rank` (0 to below 1) of all values, of which there are some, lie below.
double quantile(std::vector<double> values, double rank);
inline double median(std::vector<double> values) {
    return quantile(std::move(values), 0.5);
}

/// Skips the benchmark with the error's message. True if there was one.
template <class T>
bool failed(benchmark::State& state, const Result<T>& result) {
    if (!result) state.SkipWithError(result.error().message());
    return !result;
}

/// Times first_call.cc's process over a cache's folder or a bundle, from before its start to the end of its first call,
/// and in turn with it bare_start.cc's, which makes no call.
void run_starts(benchmark::State& state, const std::string& store);

/// Runs a plan on all layers, one after the other, as an engine's step does.
Result<void> run_layers(Plan& plan, const Call& call);

/// A kernel and a plan of the shared engine for the call; its error skips the benchmark.
Result<Plan> make_plan(const test::IndexArrays& call);

}  // namespace kvjit::bench
