#include "cuda/compile_report.h"

#include <charconv>
#include <ranges>

namespace kvjit::rt {
namespace {

/// Reads the number right before `unit`, as in "16 bytes stack frame"; without one `value` is unchanged.
void read_before(std::string_view line, std::string_view unit, int& value) {
    const std::size_t end = line.find(unit);
    if (end == line.npos || end == 0) return;
    const std::size_t last = line.find_last_not_of("0123456789", end - 1);
    const std::size_t begin = last == line.npos ? 0 : last + 1;
    std::from_chars(line.data() + begin, line.data() + end, value);
}

/// The quoted text after `key`; empty if there is no such key.
std::string_view quoted_after(std::string_view line, std::string_view key) {
    const std::size_t at = line.find(key);
    if (at == line.npos) return {};
    const std::size_t open = line.find('\'', at + key.size());
    if (open == line.npos) return {};
    const std::size_t close = line.find('\'', open + 1);
    return close == line.npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

void read_line(std::string_view line, EntryReport& report) {
    read_before(line, " bytes stack frame", report.stack_bytes);
    read_before(line, " bytes spill stores", report.spill_store_bytes);
    read_before(line, " bytes spill loads", report.spill_load_bytes);
    if (line.find("Used ") != line.npos) read_before(line, " registers", report.registers);
    read_before(line, " bytes smem", report.shared_bytes);
}

}  // namespace

std::vector<EntryReport> parse_compile_report(std::string_view log) {
    std::vector<EntryReport> reports;
    for (const auto part : std::views::split(log, '\n')) {
        const std::string_view line(part.begin(), part.end());
        if (const auto entry = quoted_after(line, "Compiling entry function"); !entry.empty()) {
            reports.emplace_back().entry = entry;
        } else if (!reports.empty()) {
            read_line(line, reports.back());
        }
    }
    return reports;
}

std::string without_times(std::string_view log) {
    std::string kept;
    for (const auto part : std::views::split(log, '\n')) {
        const std::string_view line(part.begin(), part.end());
        if (line.empty() || line.find("Compile time") != line.npos) continue;
        kept.append(line).append("\n");
    }
    return kept;
}

}  // namespace kvjit::rt
