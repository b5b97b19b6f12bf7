// The conformance tests' own command line, beside doctest's.
#pragma once

#include <cstdint>
#include <string>

namespace kvjit::test {

struct Options {
    std::uint64_t seed = 1;  // --seed N
    int cases = 240;         // --cases N, or KVJIT_CONFORMANCE_CASES
    int only = -1;           // --case K: this one alone
    int strength = 2;        // --strength 2|3: combinations of how many factors the cases shall cover
    int shard = 0;           // --shard I/N: cases K with K % N == I
    int shards = 1;
    bool full = false;            // --full: every pair, where tests take some of many
    std::string target = "host";  // --target NAME: where the calls run
    std::string bundle;           // --bundle FILE: kernels that it has are not compiled

    /// Whether the random case k is one of these that this run takes.
    bool takes(int k) const { return only >= 0 ? k == only : k % shards == shard; }
    bool on_cuda() const { return target.starts_with("cuda") || target.starts_with("sm_"); }
    /// Which reaches only memory that was made known to it: GuardedBuffer's, and of others the parts that were shown to
    /// it.
    bool on_gpu() const { return on_cuda() && !target.starts_with("cuda-emulated"); }
};
const Options& options();

}  // namespace kvjit::test
