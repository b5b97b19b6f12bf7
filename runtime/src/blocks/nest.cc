#include "blocks/nest.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace kvjit::rt {
namespace {

using Axes = std::vector<BlockAxis>;
using Dim = Nest::Dim;

constexpr std::size_t kFirst = index_of(Seat::kFirst), kSecond = index_of(Seat::kSecond),
                      kScratch = index_of(Seat::kScratch);

/// Splits the part of `axis` that contains `weight`. False: it can't be split there.
bool cut(Axes& axes, char axis, std::int64_t weight) {
    const auto part = std::ranges::find_if(
        axes, [&](const BlockAxis& a) { return a.axis == axis && a.weight < weight && weight < a.weight * a.extent; });
    if (part == axes.end()) return true;
    const std::int64_t low = weight / part->weight;
    if (weight % part->weight != 0 || part->extent % low != 0) return false;
    const BlockAxis high{axis, weight, part->extent / low, part->stride * low};
    part->extent = low;
    axes.push_back(high);
    return true;
}

bool cut_as(Axes& axes, const Axes& other) {
    return std::ranges::all_of(other, [&](const BlockAxis& a) { return cut(axes, a.axis, a.weight); });
}

void drop_single(Axes& axes) {
    std::erase_if(axes, [](const BlockAxis& a) { return a.extent == 1; });
}

void sort_by_axis(Axes& axes) {
    std::ranges::sort(axes, {}, [](const BlockAxis& a) { return std::pair(a.axis, a.weight); });
}

/// By descending strides of the second cache, so that it is written from its begin to its end.
void sort_by_stride(std::vector<Dim>& dims) {
    std::ranges::stable_sort(dims, std::ranges::greater(), [](const Dim& dim) {
        return std::pair(std::abs(dim.strides[kSecond]), std::abs(dim.strides[kFirst]));
    });
}

/// Whether a step of `outer` is as far as all steps of `inner`.
bool follows(const Dim& outer, const Dim& inner) {
    return outer.strides[kFirst] == inner.strides[kFirst] * inner.extent &&
           outer.strides[kSecond] == inner.strides[kSecond] * inner.extent;
}

std::vector<Dim> merged(const std::vector<Dim>& dims) {
    std::vector<Dim> fewer;
    for (const Dim& dim : dims) {
        if (!fewer.empty() && follows(fewer.back(), dim)) {
            fewer.back() = {fewer.back().extent * dim.extent, dim.strides};
        } else {
            fewer.push_back(dim);
        }
    }
    return fewer;
}

}  // namespace

std::optional<Nest> Nest::pair(Axes first, Axes second) {
    if (!cut_as(first, second) || !cut_as(second, first)) return std::nullopt;
    for (Axes* axes : {&first, &second}) {
        drop_single(*axes);
        sort_by_axis(*axes);
    }
    const auto same = [](const BlockAxis& a, const BlockAxis& b) {
        return std::tuple(a.axis, a.weight, a.extent) == std::tuple(b.axis, b.weight, b.extent);
    };
    if (!std::ranges::equal(first, second, same)) return std::nullopt;
    std::vector<Dim> dims;
    for (std::size_t i = 0; i < first.size(); ++i) {
        dims.push_back({first[i].extent, {first[i].stride, second[i].stride, 0}});
    }
    sort_by_stride(dims);
    return Nest(merged(dims));
}

Nest::Nest(std::vector<Dim> dims) : dims_(std::move(dims)) {
    const bool has_run = !dims_.empty() && dims_.back().strides[kFirst] == 1 && dims_.back().strides[kSecond] == 1;
    if (has_run) {
        run_ = dims_.back().extent;
        dims_.pop_back();
    }
    bytes_ = run_;
    for (std::size_t i = dims_.size(); i-- > 0;) {
        dims_[i].strides[kScratch] = bytes_;
        bytes_ *= dims_[i].extent;
    }
}

Nest::Walk::Walk(const Nest& nest, std::int64_t run, Seat one_at, Seat other_at)
    : dims(nest.dims_), one_seat(index_of(one_at)), other_seat(index_of(other_at)) {
    for (std::size_t i = dims.size(); i-- > 0;) {
        index[i] = run % dims[i].extent;
        run /= dims[i].extent;
        one += index[i] * dims[i].strides[one_seat];
        other += index[i] * dims[i].strides[other_seat];
    }
    if (dims.empty()) return;
    one_step = dims.back().strides[one_seat];
    other_step = dims.back().strides[other_seat];
}

void Nest::Walk::go(std::int64_t runs) {
    for (std::size_t i = dims.size(); i-- > 0; runs = 1) {
        const Dim& dim = dims[i];
        index[i] += runs;
        const bool ends = index[i] == dim.extent;
        const std::int64_t steps = ends ? runs - dim.extent : runs;
        one += steps * dim.strides[one_seat];
        other += steps * dim.strides[other_seat];
        if (!ends) return;
        index[i] = 0;
    }
}

}  // namespace kvjit::rt
