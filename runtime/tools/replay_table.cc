#include "replay_table.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kOpWidth = 23, kErrorWidth = 9;

/// Spaces that pad the text to its column.
std::size_t fill_of(const std::string& text, std::size_t column) {
    return std::max(text.size(), column) - text.size();
}

std::string padded(const std::string& text, std::size_t column) {
    return text + std::string(fill_of(text, column) + 2, ' ');
}

}  // namespace

std::string name_in_table(const std::string& file) {
    constexpr std::string_view kSuffix = ".safetensors";
    std::string name = std::filesystem::path(file).filename().string();
    if (name.ends_with(kSuffix)) name.erase(name.size() - kSuffix.size());
    return escaped(name);
}

std::string error_in_table(const Verdict& verdict) {
    if (verdict.error == 0) return verdict.pass ? "0" : "-";
    char text[16];
    std::snprintf(text, sizeof text, "%.1e", verdict.error);
    return text;
}

ReplayTable::ReplayTable(const std::vector<std::string>& files) {
    for (const std::string& file : files) width_ = std::max(width_, name_in_table(file).size());
}

void ReplayTable::header() const {
    row("file", "op", "max error", coloured("result", Colour::kDim), "spec");
}

void ReplayTable::row(const std::string& file, const std::string& op, const std::string& error,
                      const std::string& result, const std::string& spec) const {
    print(padded(name_in_table(file), width_) + padded(op, kOpWidth) + std::string(fill_of(error, kErrorWidth), ' ') +
          error + "  " + result + "  " + spec + "\n");
}

}  // namespace kvjit::tool
