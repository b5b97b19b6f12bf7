// How many new tokens of a sequence attend_decode takes; attend_prefill takes all other numbers of them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "generator/program.h"

namespace kvjit::gen {

/// Numbers of new tokens, from 1 to 64.
class TokenCounts {
public:
    static constexpr int kMost = 64;

    /// Precondition: 1 <= tokens <= kMost.
    void add(int tokens) { bits_ |= std::uint64_t{1} << (tokens - 1); }
    bool contains(std::int64_t tokens) const {
        return tokens >= 1 && tokens <= kMost && (bits_ >> (tokens - 1) & 1) != 0;
    }
    /// Whether one of `numbers` is among them and not in `other`, or the other way round.
    bool differ(const TokenCounts& other, const TokenCounts& numbers) const {
        return ((bits_ ^ other.bits_) & numbers.bits_) != 0;
    }
    /// The largest of them; 0: there is none.
    int most() const { return static_cast<int>(std::bit_width(bits_)); }

private:
    std::uint64_t bits_ = 0;
};

/// programs: the spec's, on the CPU that runs them, `target`.
TokenCounts cpu_decode_tokens(const KernelSpec& spec, const Target& target, std::span<const Program> programs);
/// A GPU's decode takes so many and all fewer.
int gpu_decode_tokens(const KernelSpec& spec);

}  // namespace kvjit::gen
