#include "inspect/assembly_line.h"

#include <charconv>

namespace kvjit::tool {

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

AssemblyLine parse_line(std::string_view text) {
    // A directive's string may have a # in it.
    const bool is_quoted = text.starts_with("\t.") && text.contains('"');
    const std::size_t hash = is_quoted ? text.npos : text.find('#');
    AssemblyLine line;
    line.is_indented = text.starts_with('\t') || text.starts_with(' ');
    line.text = trimmed(text.substr(0, hash));
    if (hash != text.npos) line.comment = trimmed(text.substr(hash + 1));
    return line;
}

int number_after(std::string_view text, std::string_view key, int otherwise) {
    const std::size_t at = text.find(key);
    int number = otherwise;
    if (at != text.npos) std::from_chars(text.data() + at + key.size(), text.data() + text.size(), number);
    return number;
}

std::string place_of(std::string_view comment) {
    std::string_view place = comment.substr(0, comment.rfind(':'));
    if (place.starts_with("templates/")) place.remove_prefix(std::string_view("templates/").size());
    return place.ends_with(":0") ? std::string() : std::string(place);
}

}  // namespace kvjit::tool
