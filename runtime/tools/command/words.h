// Words in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvjit::tool {

/// "one, two, three"
std::string joined(const std::vector<std::string>& words);

/// "1 file", "2 files", "3 entries"
std::string number_of(std::int64_t count, std::string_view what);

/// "; did you mean replay?", or "" where no word is likely.
std::string meant_of(const std::string& given, const std::vector<std::string>& words);

/// The words of `text` in lines of at most `width` columns, each after the first behind `indent`.
std::string wrapped(std::string_view text, std::size_t width, const std::string& indent);

}  // namespace kvjit::tool
