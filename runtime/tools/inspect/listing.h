// Assembly in a form that people read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace kvjit::tool {

/// Lines of a rendered source by the place that its #line directives give them: "cpu/store.cc:40".
using SourceLines = std::map<std::string, std::string, std::less<>>;
SourceLines source_lines(std::string_view source);

/// Labels, instructions and comments on loops and spills, without directives and data. With `lines`, each change of
/// line has the line's place and text in front.
std::string readable_assembly(std::string_view text, const SourceLines* lines);

}  // namespace kvjit::tool
