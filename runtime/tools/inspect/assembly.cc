#include "inspect/assembly.h"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <utility>

namespace kvjit::tool {
namespace {

/// A line of assembly, taken apart.
struct Line {
    std::string_view text;     // without its comment and blanks around
    std::string_view comment;  // after #
    bool is_indented = false;

    bool is_label() const { return !is_indented && text.ends_with(':'); }
    bool is_directive() const { return is_indented && text.starts_with('.'); }
    bool is_instruction() const { return is_indented && !text.empty() && !is_directive(); }
    /// "# %bb.4:": a block that only the one before it reaches.
    bool begins_block() const { return is_label() || (text.empty() && comment.starts_with("%bb.")); }
};

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Line parse_line(std::string_view text) {
    // A directive's string may have a # in it.
    const bool is_quoted = text.starts_with("\t.") && text.contains('"');
    const std::size_t hash = is_quoted ? text.npos : text.find('#');
    Line line;
    line.is_indented = text.starts_with('\t') || text.starts_with(' ');
    line.text = trimmed(text.substr(0, hash));
    if (hash != text.npos) line.comment = trimmed(text.substr(hash + 1));
    return line;
}

template <class Take>
void for_each_line(std::string_view text, Take&& take) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        take(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
    return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

int widest_register(std::string_view operands) {
    if (operands.contains("%tmm") || operands.contains("%zmm")) return 64;
    if (operands.contains("%ymm")) return 32;
    return operands.contains("%xmm") ? 16 : 0;
}

/// Whether the destination, the last operand of AT&T's syntax, is memory.
bool writes_memory(std::string_view mnemonic, std::string_view operands) {
    if (starts_with_any(mnemonic, {"cmp", "test", "vptest", "vucomis", "ucomis", "lea", "prefetch", "j", "call"}))
        return false;
    const std::size_t open = operands.rfind('(');
    return open != operands.npos && operands.find(',', operands.find(')', open)) == operands.npos;
}

InstructionCounts count(std::string_view text, std::string_view comment) {
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    const std::string_view mnemonic = text.substr(0, end), operands = trimmed(text.substr(end));
    InstructionCounts counts;
    counts.instructions = 1;
    counts.vector_bytes = widest_register(operands);
    counts.fmas =
        starts_with_any(mnemonic, {"vfmadd", "vfmsub", "vfnmadd", "vfnmsub", "vdpbf16", "vpdpb", "vpdpw", "tdp"});
    counts.tile_products = mnemonic.starts_with("tdp");
    counts.multiplies = starts_with_any(mnemonic, {"mulps", "mulpd", "mulss", "vmulps", "vmulpd", "vmulss"});
    counts.spills = comment.ends_with("Spill");
    counts.reloads = comment.ends_with("Reload");
    const bool has_memory =
        operands.contains('(') && !starts_with_any(mnemonic, {"lea", "prefetch", "nop", "j", "call"});
    const bool is_store = has_memory && writes_memory(mnemonic, operands);
    const bool moves =
        mnemonic.contains("mov") ||
        starts_with_any(mnemonic, {"vextract", "vcvtps2ph", "vpscatter", "vscatter", "set", "tilestore", "vpextr"});
    counts.stores = is_store;
    counts.loads = has_memory && (!is_store || !moves);
    return counts;
}

/// Reads the number after `key`.
int number_after(std::string_view text, std::string_view key, int otherwise) {
    const std::size_t at = text.find(key);
    int number = otherwise;
    if (at != text.npos) std::from_chars(text.data() + at + key.size(), text.data() + text.size(), number);
    return number;
}

/// The word after `key`.
std::string_view word_after(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == text.npos) return {};
    text.remove_prefix(at + key.size());
    return text.substr(0, text.find_first_of(" \t"));
}

/// The place in a .loc directive's comment, without its column: "cpu/store.cc:40". "": line 0, of no place.
std::string place_of(std::string_view comment) {
    std::string_view place = comment.substr(0, comment.rfind(':'));
    if (place.starts_with("templates/")) place.remove_prefix(std::string_view("templates/").size());
    return place.ends_with(":0") ? std::string() : std::string(place);
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
        const Line line = parse_line(raw);
        if (line.begins_block()) begin_block(line);
        if (line.text.empty() || line.is_label()) read_loop(line.comment);
        if (line.is_directive()) read_directive(line);
        if (line.is_instruction() && !functions_.empty()) add(count(line.text, line.comment));
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
    void begin_block(const Line& line) {
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

    void read_directive(const Line& line) {
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

/// Multiply-adds, weighed by their share of the instructions.
double product_rank(const InstructionCounts& counts) {
    constexpr int kTileWeight = 64;
    const double products = counts.fmas + counts.multiplies + kTileWeight * counts.tile_products;
    return products * products / std::max(counts.instructions, 1);
}

int traffic_rank(const InstructionCounts& counts) {
    return counts.vector_bytes != 0 ? counts.loads + counts.stores : 0;
}

/// "kvjit::store_run<kvjit::StoreStream>" of "void kvjit::store_run<kvjit::StoreStream>(kvjit::Run const&)".
std::string without_parameters(std::string_view name) {
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '<') ++depth;
        if (name[i] == '>') --depth;
        if (depth == 0 && name[i] == '(') {
            name = name.substr(0, i);
            break;
        }
    }
    return std::string(name.starts_with("void ") ? name.substr(5) : name);
}

bool is_code_section(std::string_view directive) {
    return directive.contains(".text");
}

/// Whether a comment tells people something.
bool is_worth_reading(std::string_view comment) {
    return comment.contains("Loop") || comment.ends_with("Spill") || comment.ends_with("Reload");
}

}  // namespace

InstructionCounts& InstructionCounts::operator+=(const InstructionCounts& other) {
    instructions += other.instructions;
    fmas += other.fmas;
    tile_products += other.tile_products;
    multiplies += other.multiplies;
    loads += other.loads;
    stores += other.stores;
    spills += other.spills;
    reloads += other.reloads;
    vector_bytes = std::max(vector_bytes, other.vector_bytes);
    return *this;
}

std::vector<AssemblyFunction> read_assembly(std::string_view text) {
    Reader reader;
    for_each_line(text, [&](std::string_view line) { reader.take(line); });
    return reader.finish();
}

bool find_hot_loop(const std::vector<AssemblyFunction>& functions, HotLoop& found) {
    std::pair best = {-1.0, -1};
    for (const AssemblyFunction& function : functions) {
        for (const AssemblyLoop& loop : function.loops) {
            const std::pair rank = {product_rank(loop.counts), traffic_rank(loop.counts)};
            if (!loop.is_innermost || rank <= best) continue;
            best = rank;
            found = {demangled(function.name), loop};
        }
    }
    return best.second >= 0;
}

std::string demangled(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                           std::free);
    return text ? without_parameters(text.get()) : name;
}

SourceLines source_lines(std::string_view source) {
    SourceLines lines;
    std::string file;
    int number = 0;
    for_each_line(source, [&](std::string_view line) {
        if (line.starts_with("#line ")) {
            number = number_after(line, "#line ", 1);
            const std::size_t open = line.find('"');
            if (open != line.npos) file = line.substr(open + 1, line.rfind('"') - open - 1);
            if (file.starts_with("templates/")) file.erase(0, std::string_view("templates/").size());
            return;
        }
        lines.emplace(file + ":" + std::to_string(number++), trimmed(line));
    });
    return lines;
}

std::string readable_assembly(std::string_view text, const SourceLines* lines) {
    std::string shown, place;
    bool is_code = true;
    for_each_line(text, [&](std::string_view raw) {
        const Line line = parse_line(raw);
        if (line.is_directive()) {
            if (line.text.starts_with(".section")) is_code = is_code_section(line.text);
            if (line.text == ".text") is_code = true;
            const std::string now = line.text.starts_with(".loc") ? place_of(line.comment) : "";
            if (lines == nullptr || now.empty() || now == place) return;
            place = now;
            const auto found = lines->find(place);
            shown += "# " + place + (found == lines->end() ? "" : ": " + found->second) + "\n";
            return;
        }
        if (!is_code || (line.is_label() && line.text.starts_with(".L") && !line.text.starts_with(".LBB"))) return;
        const bool keeps = is_worth_reading(line.comment);
        if (line.text.empty() && !keeps) return;
        if (line.is_label() && !line.text.starts_with(".L")) shown += "\n";
        shown += (line.is_indented && !line.text.empty() ? "\t" : "") + std::string(line.text);
        if (keeps) shown += std::string(line.text.empty() ? "" : "\t") + "# " + std::string(line.comment);
        shown += "\n";
    });
    return shown;
}

}  // namespace kvjit::tool
