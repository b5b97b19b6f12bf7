// A block's bytes in two caches at once: which byte of the one is which of the other, in the longest runs that both
// have.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvjit::rt {

/// A part of an axis of a block: steps of `weight` along it, `stride` bytes apart. "Dd8" is D in two parts, of weights
/// 8 and 1. Axis 'B' are the bytes of an element.
struct BlockAxis {
    char axis;
    std::int64_t weight, extent, stride;

    bool operator==(const BlockAxis&) const = default;
};

/// The two caches of a call, and memory of its own that has a block's bytes in order.
enum class Seat : std::uint8_t { kFirst, kSecond, kScratch };
inline constexpr std::size_t kSeats = 3;
constexpr std::size_t index_of(Seat seat) {
    return static_cast<std::size_t>(seat);
}

class Nest {
public:
    /// Outermost first. Strides are those of the seats.
    struct Dim {
        std::int64_t extent;
        std::array<std::int64_t, kSeats> strides;
    };
    /// Byte offsets from where a block begins.
    using Offsets = std::array<std::int64_t, kSeats>;

    /// Nothing where parts of an axis don't fit into each other: pieces of 6 and of 4.
    static std::optional<Nest> pair(std::vector<BlockAxis> first, std::vector<BlockAxis> second);

    /// Around the runs.
    const std::vector<Dim>& dims() const { return dims_; }
    /// Neighbouring bytes, in both.
    std::int64_t run() const { return run_; }
    std::int64_t bytes() const { return bytes_; }

    /// `each(offsets, bytes)` for each run, or piece of one, of the bytes begin..end-1 of the block.
    template <class Each>
    void for_each_run(std::int64_t begin, std::int64_t end, const Each& each) const {
        Walk walk(*this, begin / run_);
        std::int64_t skipped = begin % run_;
        while (begin < end) {
            const std::int64_t bytes = run_ - skipped < end - begin ? run_ - skipped : end - begin;
            each(walk.at(skipped), bytes);
            begin += bytes;
            skipped = 0;
            walk.next();
        }
    }

private:
    /// T, L, 2, H, D and B, of which T and D have up to three parts each.
    static constexpr std::size_t kMaxDims = 10;

    /// Over the runs, in order.
    class Walk {
    public:
        Walk(const Nest& nest, std::int64_t run);
        Offsets at(std::int64_t skipped) const;
        void next();

    private:
        const std::vector<Dim>& dims_;
        std::array<std::int64_t, kMaxDims> index_{};
        Offsets offsets_{};
    };

    explicit Nest(std::vector<Dim> dims);

    std::vector<Dim> dims_;
    std::int64_t run_ = 1, bytes_ = 1;
};

}  // namespace kvjit::rt
