#include "generator/axes.h"

#include <charconv>

namespace kvjit::gen {

std::int32_t Axes::find(char letter) const {
    const std::size_t at = order().find(letter);
    return at == std::string_view::npos ? -1 : static_cast<std::int32_t>(at);
}

std::int32_t Axes::extent(char letter) const {
    const std::int32_t at = find(letter);
    return at < 0 ? 0 : inner[static_cast<std::size_t>(at)];
}

std::optional<Axes> parse_axes(std::string_view layout) {
    Axes axes;
    while (!layout.empty()) {
        if (axes.rank == KVJIT_MAX_RANK) return std::nullopt;
        const char letter = layout.front();
        layout.remove_prefix(1);
        std::int32_t extent = 0;
        if (letter == 'd' || letter == 't') {
            const auto [end, error] = std::from_chars(layout.data(), layout.data() + layout.size(), extent);
            if (error != std::errc() || extent < 1 || layout.front() == '0') return std::nullopt;
            layout.remove_prefix(static_cast<std::size_t>(end - layout.data()));
        }
        const auto at = static_cast<std::size_t>(axes.rank++);
        axes.letters[at] = letter;
        axes.inner[at] = extent;
    }
    return axes;
}

Axes axes_of(std::string_view layout) {
    return *parse_axes(layout);
}

bool is_axis_order(std::string_view layout) {
    const std::optional<Axes> axes = parse_axes(layout);
    if (!axes) return false;
    const std::string_view order = axes->order();
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (!std::string_view("NTL2HDtd").contains(order[i]) || order.find(order[i], i + 1) != order.npos) return false;
    }
    const auto split = [&](char inner, char outer) {
        return !axes->has(inner) || axes->find(inner) > axes->find(outer);
    };
    return axes->has('T') && axes->has('H') && axes->has('D') && split('t', 'T') && split('d', 'D');
}

}  // namespace kvjit::gen
