#include "command/words.h"

#include <sstream>

#include "generator/nearest.h"

namespace kvjit::tool {

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

std::string number_of(std::int64_t count, std::string_view what) {
    std::string text = std::to_string(count).append(" ").append(what);
    if (count == 1) return text;
    if (!text.ends_with('y')) return text + 's';
    text.replace(text.size() - 1, 1, "ies");
    return text;
}

std::string meant_of(const std::string& given, const std::vector<std::string>& words) {
    return gen::did_you_mean(given, std::vector<std::string_view>(words.begin(), words.end()));
}

std::string wrapped(std::string_view text, std::size_t width, const std::string& indent) {
    std::istringstream words{std::string(text)};
    std::string lines;
    std::size_t column = indent.size();
    for (std::string word; words >> word;) {
        if (!lines.empty() && column + 1 + word.size() > width) {
            lines += "\n" + indent;
            column = indent.size();
        } else if (!lines.empty()) {
            lines += ' ';
            ++column;
        }
        lines += word;
        column += word.size();
    }
    return lines;
}

}  // namespace kvjit::tool
