// Lines of Clang's assembly, taken apart.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace kvjit::tool {

struct AssemblyLine {
    std::string_view text;     // without its comment and blanks around
    std::string_view comment;  // after #
    bool is_indented = false;

    bool is_label() const { return !is_indented && text.ends_with(':'); }
    bool is_directive() const { return is_indented && text.starts_with('.'); }
    bool is_instruction() const { return is_indented && !text.empty() && !is_directive(); }
    /// "# %bb.4:": a block that only the one before it reaches.
    bool begins_block() const { return is_label() || (text.empty() && comment.starts_with("%bb.")); }
};

AssemblyLine parse_line(std::string_view text);

template <class Take>
void for_each_line(std::string_view text, Take&& take) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        take(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

std::string_view trimmed(std::string_view text);

/// The number after `key`; `otherwise` where there is none.
int number_after(std::string_view text, std::string_view key, int otherwise);

/// The place in a .loc directive's comment, without its column: "cpu/store.cc:40". "": line 0, of no place.
std::string place_of(std::string_view comment);

}  // namespace kvjit::tool
