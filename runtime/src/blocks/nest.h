// Maps the bytes of a block in one cache to those in another one, in the longest runs that are contiguous in both.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvjit::rt {

/// A part of an axis of a block: its steps are `weight` apart on the axis and `stride` bytes in memory. "Dd8" is D in
/// two parts, of weights 8 and 1. Axis 'B' is the bytes of an element.
struct BlockAxis {
    char axis;
    std::int64_t weight, extent, stride;

    bool operator==(const BlockAxis&) const = default;
};

/// The two caches of a call, and scratch memory that holds a block's bytes in order.
enum class Seat : std::uint8_t { kFirst, kSecond, kScratch };
inline constexpr std::size_t kSeats = 3;
constexpr std::size_t index_of(Seat seat) {
    return static_cast<std::size_t>(seat);
}

class Nest {
public:
    /// Outermost first. `strides`: at each seat.
    struct Dim {
        std::int64_t extent;
        std::array<std::int64_t, kSeats> strides;
    };
    /// nullopt where parts of an axis don't divide each other: pieces of 6 and of 4.
    static std::optional<Nest> pair(std::vector<BlockAxis> first, std::vector<BlockAxis> second);

    /// The dimensions around the runs.
    const std::vector<Dim>& dims() const { return dims_; }
    /// Bytes that are contiguous in both.
    std::int64_t run() const { return run_; }
    std::int64_t bytes() const { return bytes_; }

    /// Calls `each(one, other, bytes)` for each run, or part of one, within the bytes begin..end-1 of the block. `one`
    /// and `other` are offsets from the block's begin at two of the seats.
    template <class Each>
    void for_each_run(std::int64_t begin, std::int64_t end, Seat one, Seat other, const Each& each) const {
        Walk walk(*this, begin / run_, one, other);
        if (const std::int64_t skipped = begin % run_; skipped != 0) {
            const std::int64_t bytes = std::min(run_ - skipped, end - begin);
            each(walk.one + skipped, walk.other + skipped, bytes);
            begin += bytes;
            walk.go(1);
        }
        while (begin < end) {
            // To the end of the innermost dimension; the last run may be partial.
            const std::int64_t runs = std::min(walk.row(), (end - begin) / run_);
            for (std::int64_t i = 0; i < runs; ++i) {
                each(walk.one + i * walk.one_step, walk.other + i * walk.other_step, run_);
            }
            begin += runs * run_;
            walk.go(runs);
            if (runs == 0) return each(walk.one, walk.other, end - begin);
        }
    }

private:
    /// T, L, 2, H, D and B, of which T and D have up to three parts each.
    static constexpr std::size_t kMaxDims = 10;

    /// A walk over the runs, in order.
    struct Walk {
        Walk(const Nest& nest, std::int64_t run, Seat one, Seat other);
        /// Runs up to the end of the innermost dimension.
        std::int64_t row() const { return dims.empty() ? 1 : dims.back().extent - index[dims.size() - 1]; }
        /// Advances by 0 to row() runs.
        void go(std::int64_t runs);

        const std::vector<Dim>& dims;
        std::size_t one_seat, other_seat;
        std::array<std::int64_t, kMaxDims> index{};
        std::int64_t one = 0, other = 0;            // offsets
        std::int64_t one_step = 0, other_step = 0;  // along the innermost dimension
    };

    explicit Nest(std::vector<Dim> dims);

    std::vector<Dim> dims_;
    std::int64_t run_ = 1, bytes_ = 1;
};

}  // namespace kvjit::rt
