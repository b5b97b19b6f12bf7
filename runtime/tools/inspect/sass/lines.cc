#include "inspect/sass/lines.h"

#include <algorithm>

#include "inspect/assembly_line.h"

namespace kvjit::tool::sass {
namespace {

constexpr std::string_view kFrame = "//## File \"", kTemplates = "templates/", kPrimitives = "cuda/machine/";
constexpr std::string_view kNoLine = "no line";

/// "cuda/ring.h:68" of `//## File "/home/me/templates/cuda/ring.h", line 68 inlined at ...`; "": it is no template's.
std::string frame_of(std::string_view text) {
    text.remove_prefix(kFrame.size());
    const std::size_t end = text.find('"');
    const std::string_view file = text.substr(0, end);
    const std::size_t folder = file.rfind(kTemplates);
    const bool is_template = folder == 0 || (folder != file.npos && file[folder - 1] == '/');
    if (end == text.npos || !is_template) return "";
    const int number = number_after(text.substr(end), "line ", 0);
    return std::string(file.substr(folder + kTemplates.size())) + ":" + std::to_string(number);
}

/// From the innermost frame on.
std::string own_line(const std::vector<std::string>& frames) {
    const auto own = std::ranges::find_if_not(frames, [](const auto& each) { return each.starts_with(kPrimitives); });
    if (own != frames.end()) return *own;
    return frames.empty() ? std::string(kNoLine) : frames.front();
}

/// A line's instructions before they are in order.
struct Gathered {
    std::int64_t instructions = 0;
    std::vector<std::pair<std::string, std::int64_t>> opcodes;  // in the order in which they came

    void add(const std::string& opcode, std::int64_t times) {
        instructions += times;
        const auto found = std::ranges::find(opcodes, opcode, &std::pair<std::string, std::int64_t>::first);
        found == opcodes.end() ? opcodes.emplace_back(opcode, times).second : found->second += times;
    }
};

}  // namespace

std::map<std::int64_t, std::string> lines_of(std::string_view listing) {
    std::map<std::int64_t, std::string> lines;
    std::vector<std::string> frames;
    bool is_new = true, has_frames = false;
    for_each_line(listing, [&](std::string_view raw) {
        const std::string_view line = trimmed(raw);
        if (line.starts_with(kFrame)) {
            if (is_new) frames.clear();
            if (std::string frame = frame_of(line); !frame.empty()) frames.push_back(std::move(frame));
            is_new = false;
            has_frames = true;
        } else if (const auto address = address_of(line)) {
            lines[*address] = own_line(frames);
            is_new = true;
        }
    });
    return has_frames ? lines : std::map<std::int64_t, std::string>();
}

std::vector<LineCount> count_lines(std::span<const Counted> code, const std::map<std::int64_t, std::string>& lines) {
    std::map<std::string, Gathered> by_line;
    for (const auto& [instruction, times] : code) {
        const auto line = lines.find(instruction->address);
        if (line != lines.end()) by_line[line->second].add(instruction->opcode, times);
    }
    std::vector<LineCount> counts;
    for (auto& [line, gathered] : by_line) {
        std::ranges::stable_sort(gathered.opcodes, std::ranges::greater(),
                                 &std::pair<std::string, std::int64_t>::second);
        counts.push_back({line, gathered.instructions, std::move(gathered.opcodes)});
    }
    std::ranges::stable_sort(counts, std::ranges::greater(), &LineCount::instructions);
    return counts;
}

}  // namespace kvjit::tool::sass
