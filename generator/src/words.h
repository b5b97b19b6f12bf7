// Texts that are read word by word.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace kvjit::gen {

inline std::string quoted(std::string_view text) {
    return "\"" + std::string(text) + "\"";
}

/// Removes `separator` and the text before it from `text`, or all of it, and returns what stood before.
inline std::string_view take_until(std::string_view& text, std::string_view separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(std::min(end + separator.size(), text.size()));
    return taken;
}

}  // namespace kvjit::gen
