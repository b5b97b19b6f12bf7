#include "label.h"

#include <algorithm>

#include "tensor.h"

namespace kvjit::tool {

std::string Label::place(std::span<const std::int64_t> shape, std::int64_t i) const {
    if (axes.size() != shape.size()) return name + position_text(shape, i);
    std::string text;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        const std::int64_t index = i % shape[axis];
        i /= shape[axis];
        std::string part = axes[axis] + " " + std::to_string(index);
        if (axes[axis] == "token" && !token_starts.empty()) {
            const auto after = std::ranges::upper_bound(token_starts, index);
            const std::int64_t sequence = after - token_starts.begin() - 1;
            if (sequence >= 0 && after != token_starts.end()) {
                part += " (sequence " + std::to_string(sequence) + ", its token " +
                        std::to_string(index - token_starts[static_cast<std::size_t>(sequence)]) + ")";
            }
        }
        text = part + (text.empty() ? "" : ", ") + text;
    }
    return name + "[" + text + "]";
}

Region::Region(std::span<const std::int64_t> shape) : shape_(shape) {
    for (const std::int64_t extent : shape) reached_.emplace_back(static_cast<std::size_t>(extent));
}

void Region::add(std::int64_t element) {
    ++count_;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
        reached_[axis][static_cast<std::size_t>(element % shape_[axis])] = true;
        element /= shape_[axis];
    }
}

std::string Region::axis_text(std::size_t axis, const std::string& name) const {
    const std::vector<bool>& reached = reached_[axis];
    const auto indices = static_cast<std::size_t>(std::ranges::count(reached, true));
    const auto first = static_cast<std::size_t>(std::ranges::find(reached, true) - reached.begin());
    std::size_t last = reached.size() - 1;
    while (!reached[last]) --last;
    if (indices == reached.size() && indices > 1) return name.empty() ? "*" : "every " + name;
    std::string text = (name.empty() ? "" : name + " ") + std::to_string(first);
    if (last > first) text += " to " + std::to_string(last);
    return indices == last - first + 1 ? text : std::to_string(indices) + " of " + text;
}

std::string Region::text(const Label& label) const {
    const bool named = label.axes.size() == shape_.size();
    std::string text;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
        text += (axis > 0 ? ", " : "") + axis_text(axis, named ? label.axes[axis] : "");
    }
    return named ? text : "(" + text + ")";
}

}  // namespace kvjit::tool
