// One MultiHeadCacheAttention call with all the memory that it needs: what the tests of processes run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace kvjit::test {

/// What Call holds data for.
inline constexpr char kCallSpec[] =
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,quant_bit=8,cache_mode=page_table,page_size=16,layout=L2HTD";
inline constexpr int kCallPrograms = 4;  // store, attend for decode, attend for prefill, merge

/// Sequences of the same lengths, whose past is not in the cache: its slots hold made-up codes.
class Call {
public:
    /// `tokens` new ones of `keys` keys in each sequence.
    Call(std::int64_t sequences, std::int64_t tokens, std::int64_t keys);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    /// Valid as long as the call.
    Batch batch() const;
    Tensors tensors();

    const std::vector<float>& output() const { return output_; }
    const std::vector<std::int8_t>& cache() const { return cache_; }
    /// FNV-1a of the output's bits.
    std::uint64_t output_hash() const;

private:
    std::int64_t sequences_, tokens_, columns_;
    std::vector<std::int64_t> seqstarts_, kvstarts_, start_pos_, pages_;
    std::vector<float> query_, key_, value_, output_, scale_;
    std::vector<std::int8_t> cache_;
};

/// Plans and runs the call on a kernel of kCallSpec.
Result<void> plan_and_run(const Kernel& kernel, Call& call);

/// The engine's kernel of kCallSpec. Errors of the engine's creation come out here too.
Result<Kernel> call_kernel(const EngineOptions& options);

}  // namespace kvjit::test
