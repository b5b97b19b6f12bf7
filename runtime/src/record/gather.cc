#include "record/gather.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "batch/batch_view.h"

namespace kvjit::rt {
namespace {

constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();

std::size_t u(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

/// Joins pieces that are neighbours on both sides: a GPU is asked as rarely as possible.
class Reader {
public:
    Reader(Plan& plan, std::byte* to) : plan_(plan), to_(to) {}

    gen::Result<void> read(std::intptr_t from, std::int64_t bytes) {
        if (from != from_ + bytes_) {
            if (auto done = flush(); !done) return done;
            from_ = from;
        }
        bytes_ += bytes;
        return {};
    }
    gen::Result<void> zero(std::int64_t bytes) {
        if (auto done = flush(); !done) return done;
        std::memset(to_, 0, u(bytes));
        to_ += bytes;
        return {};
    }
    gen::Result<void> flush() {
        if (bytes_ == 0) return {};
        auto done = plan_.download(to_, reinterpret_cast<const void*>(from_), u(bytes_));
        to_ += bytes_;
        from_ = bytes_ = 0;
        return done;
    }

private:
    Plan& plan_;
    std::byte* to_;
    std::intptr_t from_ = 0;
    std::int64_t bytes_ = 0;
};

}  // namespace

Gather Gather::of(const kvjit_tensor& tensor) {
    Gather all;
    all.base_ = reinterpret_cast<std::intptr_t>(tensor.data);
    all.element_bytes_ = rt::element_bytes(tensor);
    for (std::int32_t axis = 0; axis < tensor.rank; ++axis) {
        all.extents_.push_back(tensor.shape[axis]);
        all.strides_.push_back(tensor.strides[axis] * all.element_bytes_);
    }
    return all;
}

Gather Gather::of_blocks(const kvjit_tensor& block, std::vector<std::int64_t> addresses) {
    Gather all = of(block);
    all.base_ = 0;
    all.extents_.insert(all.extents_.begin(), static_cast<std::int64_t>(addresses.size()));
    all.strides_.insert(all.strides_.begin(), 0);
    all.picked_ = 0;
    all.offsets_ = std::move(addresses);
    return all;
}

void Gather::select(int axis, std::int64_t i) {
    keep(axis, i);
    extents_.erase(extents_.begin() + axis);
    strides_.erase(strides_.begin() + axis);
}

void Gather::keep(int axis, std::int64_t i) {
    base_ += i * strides_[u(axis)];
    extents_[u(axis)] = 1;
}

void Gather::pick(int axis, const std::vector<std::int64_t>& places) {
    picked_ = axis;
    extents_[u(axis)] = static_cast<std::int64_t>(places.size());
    offsets_.clear();
    for (const std::int64_t place : places) offsets_.push_back(place < 0 ? kAbsent : place * strides_[u(axis)]);
}

std::int64_t Gather::bytes() const {
    std::int64_t bytes = element_bytes_;
    for (const std::int64_t extent : extents_) {
        if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::numeric_limits<std::int64_t>::max();
    }
    return bytes;
}

gen::Result<void> Gather::read(Plan& plan, std::byte* to) const {
    if (bytes() == 0) return {};
    std::int64_t run = element_bytes_;  // bytes that are neighbours on both sides
    int outer = static_cast<int>(extents_.size());
    while (outer > 0 && outer - 1 != picked_ && (strides_[u(outer - 1)] == run || extents_[u(outer - 1)] == 1)) {
        run *= extents_[u(--outer)];
    }
    Reader reader(plan, to);
    std::vector<std::int64_t> index(u(outer), 0);
    while (true) {
        std::intptr_t from = base_;
        bool absent = false;
        for (int axis = 0; axis < outer; ++axis) {
            const std::int64_t i = index[u(axis)];
            const std::int64_t offset = axis == picked_ ? offsets_[u(i)] : i * strides_[u(axis)];
            absent = absent || offset == kAbsent;
            if (!absent) from += offset;
        }
        if (auto done = absent ? reader.zero(run) : reader.read(from, run); !done) return done;
        int axis = outer;
        while (axis > 0 && ++index[u(axis - 1)] == extents_[u(axis - 1)]) index[u(--axis)] = 0;
        if (axis == 0) return reader.flush();
    }
}

}  // namespace kvjit::rt
