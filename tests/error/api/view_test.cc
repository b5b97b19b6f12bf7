// Strides of every element type, as random as they come, against 128-bit arithmetic: what check_view accepts spans
// fewer than 2^63 bytes, and where it is written no two of its rows share an address.
#include "check/view.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/rng.h"

namespace kvjit::test {
namespace {

using Wide = __int128;

struct TypeSize {
    kvjit_dtype dtype;
    std::int64_t bytes;
};
constexpr TypeSize kTypes[] = {{KVJIT_F32, 4}, {KVJIT_F16, 2}, {KVJIT_I8, 1},
                               {KVJIT_U8, 1},  {KVJIT_I32, 4}, {KVJIT_I64, 8}};
constexpr Wide kBytes = Wide{1} << 63;

struct View {
    TypeSize type;
    kvjit_tensor tensor;
    rt::ViewRule rule;
};

/// Of about 2^(0..62), or one of the numbers around a limit.
std::int64_t any_size(Rng& rng) {
    const std::int64_t power = std::int64_t{1} << rng.between(0, 62);
    switch (rng.below(4)) {
        case 0:
            return rng.between(0, 20);
        case 1:
            return power - 1;
        case 2:
            return power;
        default:
            return power + static_cast<std::int64_t>(rng.uniform() * static_cast<double>(power - 1));
    }
}

View random_view(Rng& rng) {
    alignas(8) static char memory[8];
    View view{kTypes[rng.below(std::ssize(kTypes))], {}, {"view", KVJIT_AUTO, 0, {}, false, false}};
    view.rule.rank = static_cast<std::int32_t>(rng.between(1, KVJIT_MAX_RANK));
    view.rule.contiguous = rng.chance(0.7);
    view.rule.written = rng.chance(0.7);
    if (view.rule.contiguous && rng.chance(0.3))
        view.rule.free_axis = static_cast<int>(rng.between(-1, view.rule.rank - 2));
    const int other = static_cast<int>(rng.between(-1, view.rule.rank - 2));
    view.rule.row_axes = {view.rule.rank - 1, other == view.rule.free_axis ? -1 : other};
    view.rule.dtype = view.type.dtype;
    view.tensor.data = memory;
    view.tensor.dtype = view.type.dtype;
    view.tensor.rank = view.rule.rank;
    for (int axis = 0; axis < view.rule.rank; ++axis) {
        view.tensor.shape[axis] = rng.chance(0.1) ? std::max<std::int64_t>(1, any_size(rng)) : rng.between(1, 20);
        view.tensor.strides[axis] = any_size(rng);
        if (axis == view.rule.free_axis && rng.chance(0.5)) view.tensor.strides[axis] *= -1;
        view.rule.axes[static_cast<std::size_t>(axis)] = {"A", view.tensor.shape[axis], false};
    }
    if (view.rule.contiguous) view.tensor.strides[view.rule.rank - 1] = 1;
    return view;
}

Wide step(const View& view, int axis) {
    const Wide stride = view.tensor.strides[axis];
    return stride < 0 ? -stride : stride;
}

Wide reach(const View& view, int axis) {
    return (Wide{view.tensor.shape[axis]} - 1) * step(view, axis);
}

/// Every stride, stepped along or not, and all of them together.
bool fits(const View& view) {
    Wide span = 1;
    for (int axis = 0; axis < view.rule.rank; ++axis) {
        if (step(view, axis) * view.type.bytes >= kBytes) return false;
        // An axis alone is capped where it is too long by far, so that six of them can be added.
        span += std::min(reach(view, axis), kBytes);
    }
    return span * view.type.bytes < kBytes;
}

/// Each axis steps over all that the shorter strides reach; the free one over a row.
bool is_nested(const View& view) {
    const int last = view.rule.rank - 1;
    std::vector<int> axes;
    for (int axis = 0; axis <= last; ++axis) {
        if (view.tensor.shape[axis] > 1 && axis != view.rule.free_axis) axes.push_back(axis);
    }
    std::ranges::sort(axes, {}, [&](int axis) { return step(view, axis); });
    Wide covered = 0;
    // The contiguous axis is inside all others, also those that have its stride.
    if (view.rule.contiguous) covered = view.tensor.shape[last] - 1;
    for (const int axis : axes) {
        if (view.rule.contiguous && axis == last) continue;
        if (step(view, axis) <= covered) return false;
        covered += reach(view, axis);
    }
    const int free = view.rule.free_axis;
    Wide row = 0;
    for (const int axis : view.rule.row_axes) row += axis < 0 ? 0 : reach(view, axis);
    return free < 0 || view.tensor.shape[free] <= 1 || step(view, free) > row;
}

std::string describe(const View& view) {
    std::string all = "type " + std::to_string(view.type.dtype) + " free " + std::to_string(view.rule.free_axis) +
                      " over " + std::to_string(view.rule.row_axes[1]) + (view.rule.contiguous ? " contiguous" : "") +
                      (view.rule.written ? " written" : "");
    for (int axis = 0; axis < view.rule.rank; ++axis) {
        all += " " + std::to_string(view.tensor.shape[axis]) + "*" + std::to_string(view.tensor.strides[axis]);
    }
    return all;
}

TEST_CASE("strides of every type are accepted exactly where 128-bit arithmetic says so") {
    int accepted = 0, refused = 0;
    for (std::uint64_t seed = 1; seed <= 200'000; ++seed) {
        Rng rng(seed);
        const View view = random_view(rng);
        const bool wanted = fits(view) && (!view.rule.written || is_nested(view));
        const gen::Result<void> checked = rt::check_view(view.tensor, view.rule);
        ++(wanted ? accepted : refused);
        if (checked.has_value() == wanted) continue;
        const std::string verdict = wanted ? " should be accepted, of seed " : " should be refused, of seed ";
        FAIL(describe(view) << verdict << seed << (checked ? "" : ": " + checked.error().message));
    }
    CHECK(accepted > 20'000);
    CHECK(refused > 20'000);
}

TEST_CASE("the limit of a stride, or of an extent, is the largest that fits, with the axes before it") {
    int refused = 0, extents = 0;
    for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
        Rng rng(seed);
        View view = random_view(rng);
        view.rule.written = false;
        const gen::Result<void> checked = rt::check_view(view.tensor, view.rule);
        if (checked) continue;
        const std::string& argument = checked.error().argument;
        const bool is_extent = argument.starts_with("view.shape[");
        const int axis = argument[argument.find('[') + 1] - '0';
        CAPTURE(seed);
        CAPTURE(describe(view));
        for (int behind = axis + 1; behind < view.rule.rank; ++behind) {
            view.tensor.shape[behind] = view.rule.axes[static_cast<std::size_t>(behind)].extent = 1;
            view.tensor.strides[behind] = 1;
        }
        // A span is found axis by axis, a stride by itself before any span.
        if (checked.error().message.find("span") == std::string::npos) continue;
        std::int64_t& number = is_extent ? view.tensor.shape[axis] : view.tensor.strides[axis];
        const auto set = [&](std::int64_t value) {
            number = value;
            if (is_extent) view.rule.axes[static_cast<std::size_t>(axis)].extent = value;
        };
        set(checked.error().limit);
        CHECK(fits(view));
        CHECK(rt::check_view(view.tensor, view.rule).has_value());
        set(number + 1);
        CHECK_FALSE(fits(view));
        ++(is_extent ? extents : refused);
    }
    CHECK(refused > 1'000);
    CHECK(extents > 100);
}

}  // namespace
}  // namespace kvjit::test
