#include "inspect/assembly.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "inspect/assembly_line.h"

namespace kvjit::tool {
namespace {

/// The word after `key`.
std::string_view word_after(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == text.npos) return {};
    text.remove_prefix(at + key.size());
    return text.substr(0, text.find_first_of(" \t"));
}

/// The bytes of `.byte 72`, `.byte 200, 1` or `.ascii "\270\001"`, as an unsigned LEB128 number.
std::int64_t leb128(std::string_view text) {
    std::vector<unsigned> bytes;
    if (text.starts_with(".ascii")) {
        for (std::size_t i = text.find('"') + 1; i < text.size() && text[i] != '"'; ++i) {
            if (text[i] != '\\') {
                bytes.push_back(static_cast<unsigned char>(text[i]));
            } else if (i + 3 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '7') {
                unsigned byte = 0;
                std::from_chars(text.data() + i + 1, text.data() + i + 4, byte, 8);
                bytes.push_back(byte);
                i += 3;
            } else {
                const std::string_view letters = "abtnvfr";  // C's, from 7 on
                const std::size_t letter = letters.find(text[i + 1]);
                bytes.push_back(letter == letters.npos ? static_cast<unsigned char>(text[i + 1])
                                                       : static_cast<unsigned>(letter) + 7);
                ++i;
            }
        }
    } else {
        unsigned byte = 0;
        const std::string_view digits = trimmed(text.substr(std::min(text.find_first_of(" \t"), text.size())));
        std::from_chars(digits.data(), digits.data() + digits.size(), byte);
        bytes.push_back(byte);
    }
    std::int64_t number = 0;
    for (std::size_t i = 0; i < bytes.size() && i < 9; ++i)
        number |= static_cast<std::int64_t>(bytes[i] & 0x7f) << (7 * i);
    return number;
}

class Reader {
public:
    void take(std::string_view raw) {
        const AssemblyLine line = parse_line(raw);
        if (line.begins_block()) begin_block(line);
        if (line.text.empty() || line.is_label()) read_loop(line.comment);
        if (line.is_directive()) read_directive(line);
        if (line.is_instruction() && !functions_.empty()) add(count_instruction(line.text, line.comment));
    }

    std::vector<AssemblyFunction> finish() {
        for (AssemblyFunction& function : functions_) {
            if (const auto frame = frames_.find(begins_[function.name]); frame != frames_.end()) {
                function.frame_bytes = frame->second;
            }
        }
        return std::move(functions_);
    }

private:
    void begin_block(const AssemblyLine& line) {
        const std::string_view name = line.text.substr(0, line.text.size() - (line.is_label() ? 1 : 0));
        if (line.is_label() && name.starts_with(".Lfunc_begin") && !functions_.empty()) {
            begins_[functions_.back().name] = name;
            return;
        }
        if (name.starts_with(".L") && !name.starts_with(".LBB")) return;  // marks of debug information
        if (line.is_label() && !name.starts_with(".L")) functions_.push_back({std::string(name)});
        block_ = name.starts_with(".LBB") ? name.substr(2) : std::string_view();
        loop_.clear();
    }

    /// `comment`: on a block's label, or below it.
    void read_loop(std::string_view comment) {
        if (functions_.empty()) return;
        if (comment.contains("Loop Header: Depth=")) {
            loop_ = block_;
            AssemblyLoop& loop = loop_of(loop_);
            loop.depth = number_after(comment, "Depth=", 1);
            loop.is_innermost = comment.contains("This Inner Loop Header");
        } else if (comment.contains("in Loop: Header=")) {
            loop_ = word_after(comment, "Header=");
        }
    }

    void read_directive(const AssemblyLine& line) {
        if (line.text.starts_with(".loc")) place_ = place_of(line.comment);
        if (line.text.starts_with(".section")) sized_ = line.text.contains(".stack_sizes") ? "?" : "";
        if (sized_.empty()) return;
        if (line.text.starts_with(".quad")) sized_ = trimmed(line.text.substr(5));
        if (line.text.starts_with(".byte") || line.text.starts_with(".ascii")) frames_[sized_] = leb128(line.text);
    }

    AssemblyLoop& loop_of(const std::string& label) {
        std::vector<AssemblyLoop>& loops = functions_.back().loops;
        const auto found = std::ranges::find(loops, label, &AssemblyLoop::label);
        return found != loops.end() ? *found : loops.emplace_back(AssemblyLoop{.label = label, .line = {}});
    }

    void add(const InstructionCounts& counts) {
        functions_.back().counts += counts;
        if (loop_.empty()) return;
        AssemblyLoop& loop = loop_of(loop_);
        const bool is_first_fma = loop.counts.fmas == 0 && counts.fmas != 0;
        if (loop.line.empty() || (is_first_fma && !place_.empty())) loop.line = place_;
        loop.counts += counts;
    }

    std::vector<AssemblyFunction> functions_;
    std::map<std::string, std::string> begins_;   // a function's .Lfunc_begin
    std::map<std::string, std::int64_t> frames_;  // by that
    std::string block_, loop_, place_, sized_;
};

}  // namespace

std::vector<AssemblyFunction> read_assembly(std::string_view text) {
    Reader reader;
    for_each_line(text, [&](std::string_view line) { reader.take(line); });
    return reader.finish();
}

}  // namespace kvjit::tool
