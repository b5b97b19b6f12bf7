// Tensors between guard pages, with strides that a caller might have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "call/oracle.h"
#include "kvjit/kvjit.h"
#include "support/guarded_buffer.h"
#include "support/rng.h"

namespace kvjit::test {

enum class Spread {
    kDense,   // row-major, no gaps
    kPadded,  // row-major, a few elements between rows of every axis
    kSwapped  // padded, and the first two axes lie in memory in the other order
};

/// Strides for `shape`; the last axis is contiguous.
std::vector<std::int64_t> spread_strides(const std::vector<std::int64_t>& shape, Spread spread, Rng& rng);

/// Move-only; default-constructed: absent. Memory starts as 0xff bytes: NaN in float types, -1 in integers.
class Placed {
public:
    Placed() = default;
    Placed(int dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, Guard guard);

    /// Rank 1, int64 or int32.
    static Placed integers(const std::vector<std::int64_t>& values, int dtype, Guard guard);

    bool present() const { return strided_.present(); }
    Strided& strided() { return strided_; }
    const Strided& strided() const { return strided_; }
    kvjit_tensor view() const;
    template <class T>
    const T* data() const {
        return reinterpret_cast<const T*>(strided_.data);
    }

    void set(std::int64_t index, double number) { write_element(strided_.data, strided_.dtype, index, number); }
    /// Every element from `make`, in row-major order of the shape.
    template <class Make>
    void fill(Make make) {
        for_each_run([&](std::int64_t first, std::int64_t elements) {
            for (std::int64_t i = first; i < first + elements; ++i) set(i, make());
        });
    }

    /// Takes note of all bytes, for the checks below.
    void remember() { memory_ = buffer_.snapshot(); }
    const std::vector<std::byte>& remembered() const { return memory_; }
    bool unchanged() const;
    bool slack_is_whole() const { return buffer_.slack_is_whole(); }
    /// Bytes between and around the elements are as remembered.
    bool gaps_unchanged() const;
    /// The elements' bytes in row-major order.
    std::vector<std::byte> packed() const;
    std::size_t byte_count() const { return buffer_.size(); }

private:
    /// Calls visit(index, elements) for the elements in row-major order: a whole last axis at a time where its elements
    /// are neighbours, else each.
    template <class Visit>
    void for_each_run(Visit visit) const {
        walk(0, 0, visit);
    }
    template <class Visit>
    void walk(std::size_t axis, std::int64_t at, Visit& visit) const {
        if (axis == strided_.shape.size()) return visit(at, std::int64_t{1});
        if (axis + 1 == strided_.shape.size() && strided_.strides[axis] == 1) return visit(at, strided_.shape[axis]);
        for (std::int64_t i = 0; i < strided_.shape[axis]; ++i) walk(axis + 1, at + i * strided_.strides[axis], visit);
    }

    GuardedBuffer buffer_;
    Strided strided_;
    std::vector<std::byte> memory_;
};

}  // namespace kvjit::test
