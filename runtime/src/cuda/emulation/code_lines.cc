#include "cuda/emulation/code_lines.h"

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "cpu/loaded_objects.h"
#include "cuda/emulation/object_sections.h"

namespace kvjit::emulation {
namespace {

class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    bool done() const { return at_ >= bytes_.size(); }
    std::size_t at() const { return at_; }
    void go_to(std::size_t offset) { at_ = offset; }

    template <class T>
    T fixed() {
        T value = 0;
        if (at_ + sizeof(T) <= bytes_.size()) std::memcpy(&value, &bytes_[at_], sizeof(T));
        at_ += sizeof(T);
        return value;
    }

    std::uint64_t leb(bool with_sign = false) {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = fixed<std::uint8_t>();
            value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte & 0x80) continue;
            if (with_sign && byte & 0x40 && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
            break;
        }
        return value;
    }

    std::string_view text() {
        if (done()) return {};
        const std::string_view rest = bytes_.substr(at_), found = rest.substr(0, rest.find('\0'));
        at_ += found.size() + 1;
        return found;
    }

private:
    std::string_view bytes_;
    std::size_t at_ = 0;
};

// The names are DWARF's, section 7.22 and 7.5.6.
enum Standard { kCopy = 1, kAdvancePc, kAdvanceLine, kSetFile, kConstAddPc = 8, kFixedAdvancePc };
enum Extended { kEndSequence = 1, kSetAddress };
enum Content { kPath = 1, kFolder };
enum Form { kData2 = 0x05, kString = 0x08, kData1 = 0x0b, kUdata = 0x0f, kData16 = 0x1e, kLineStrp };

struct Name {
    std::string path;
    std::uint64_t folder = 0;
};

struct Value {
    std::string text;
    std::uint64_t number = 0;
};

struct Header {
    std::size_t end = 0;  // of the unit
    std::uint8_t instruction_bytes = 1;
    std::int8_t line_base = 0;
    std::uint8_t line_range = 1, opcode_base = 1;
    std::vector<std::uint8_t> operands;  // of each standard opcode
    std::vector<std::string> files;
};

class LineTable {
public:
    explicit LineTable(const std::string& object) {
        bytes_ = read_section(object, ".debug_line");
        strings_ = read_section(object, ".debug_line_str");
    }

    std::string find(std::uint64_t address) {
        Reader reader(bytes_);
        while (!reader.done()) {
            const Header header = read_header(reader);
            if (std::string found = run(reader, header, address); !found.empty()) return found;
            reader.go_to(header.end);
        }
        return {};
    }

private:
    struct Row {
        std::uint64_t address = 0;
        std::uint64_t file = 1, line = 1;
    };

    Header read_header(Reader& reader) const {
        Header header;
        const auto length = reader.fixed<std::uint32_t>();
        header.end = reader.at() + length;
        reader.fixed<std::uint16_t>();  // version: the flags that kernels are compiled with say 5
        reader.fixed<std::uint16_t>();  // bytes of an address and of a segment
        const auto header_length = reader.fixed<std::uint32_t>();
        const std::size_t program = reader.at() + header_length;
        header.instruction_bytes = reader.fixed<std::uint8_t>();
        reader.fixed<std::uint16_t>();  // operations of an instruction; whether lines begin statements
        header.line_base = reader.fixed<std::int8_t>();
        header.line_range = reader.fixed<std::uint8_t>();
        header.opcode_base = reader.fixed<std::uint8_t>();
        header.operands.push_back(0);
        for (int i = 1; i < header.opcode_base; ++i) header.operands.push_back(reader.fixed<std::uint8_t>());
        const std::vector<Name> folders = read_names(reader);
        for (const Name& file : read_names(reader)) {
            // Folder 0 is the compilation's, "."; what #line said lies in it.
            const bool inside = file.folder != 0 && file.folder < folders.size();
            header.files.push_back(inside ? folders[file.folder].path + "/" + file.path : file.path);
        }
        reader.go_to(program);
        return header;
    }

    std::vector<Name> read_names(Reader& reader) const {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> format(reader.fixed<std::uint8_t>());
        for (auto& [content, form] : format) {
            content = reader.leb();
            form = reader.leb();
        }
        std::vector<Name> names;
        for (std::uint64_t count = reader.leb(); names.size() < count && !reader.done();) {
            names.emplace_back();
            for (const auto& [content, form] : format) {
                const Value value = read_form(reader, form);
                if (content == kPath) names.back().path = value.text;
                if (content == kFolder) names.back().folder = value.number;
            }
        }
        return names;
    }

    Value read_form(Reader& reader, std::uint64_t form) const {
        switch (form) {
            case kString:
                return {std::string(reader.text()), 0};
            case kLineStrp: {
                Reader strings(strings_);
                strings.go_to(reader.fixed<std::uint32_t>());
                return {std::string(strings.text()), 0};
            }
            case kUdata:
                return {{}, reader.leb()};
            case kData1:
                return {{}, reader.fixed<std::uint8_t>()};
            case kData2:
                return {{}, reader.fixed<std::uint16_t>()};
            case kData16:
                reader.go_to(reader.at() + 16);
                return {};
            default:
                throw Unreadable();
        }
    }

    // Executes the unit's program until a row ends behind the address.
    std::string run(Reader& reader, const Header& header, std::uint64_t wanted) const {
        Row state, last;
        bool open = false;  // a row of this sequence has begun
        while (reader.at() < header.end) {
            const Step step = next(reader, header, state);
            if (step == Step::kNothing) continue;
            if (open && last.address <= wanted && wanted < state.address) return name(header, last);
            open = step == Step::kRow;
            // Line 0 is code of no line: what came before it tells more.
            if (!open || state.line != 0) last = state;
            if (step == Step::kEnd) state = {};
        }
        return {};
    }

    enum class Step { kNothing, kRow, kEnd };

    static Step next(Reader& reader, const Header& header, Row& state) {
        const auto opcode = reader.fixed<std::uint8_t>();
        if (opcode >= header.opcode_base) {
            const int adjusted = opcode - header.opcode_base;
            state.address += static_cast<unsigned>(adjusted / header.line_range) * header.instruction_bytes;
            state.line += static_cast<std::uint64_t>(header.line_base + adjusted % header.line_range);
            return Step::kRow;
        }
        return opcode == 0 ? extended(reader, state) : standard(reader, header, opcode, state);
    }

    static Step extended(Reader& reader, Row& state) {
        const auto length = reader.leb();
        const std::size_t end = reader.at() + length;
        const auto opcode = reader.fixed<std::uint8_t>();
        if (opcode == kSetAddress) state.address = reader.fixed<std::uint64_t>();
        reader.go_to(end);
        return opcode == kEndSequence ? Step::kEnd : Step::kNothing;
    }

    static Step standard(Reader& reader, const Header& header, std::uint8_t opcode, Row& state) {
        switch (opcode) {
            case kCopy:
                return Step::kRow;
            case kAdvancePc:
                state.address += reader.leb() * header.instruction_bytes;
                break;
            case kAdvanceLine:
                state.line += reader.leb(true);
                break;
            case kSetFile:
                state.file = reader.leb();
                break;
            case kConstAddPc:
                state.address +=
                    static_cast<unsigned>((255 - header.opcode_base) / header.line_range) * header.instruction_bytes;
                break;
            case kFixedAdvancePc:
                state.address += reader.fixed<std::uint16_t>();
                break;
            default:
                for (int i = 0; i < header.operands[opcode]; ++i) reader.leb();
                break;
        }
        return Step::kNothing;
    }

    static std::string name(const Header& header, const Row& row) {
        return (row.file < header.files.size() ? header.files[row.file] : "?") + ":" + std::to_string(row.line);
    }

    std::string bytes_, strings_;
};

constexpr const char* kUnknown = "an unknown line";

}  // namespace

std::string code_line(const void* address) {
    const auto call = reinterpret_cast<std::uint64_t>(address) - 1;
    try {
        const std::string object = rt::find_loaded_object(call);
        if (std::string found = object.empty() ? object : LineTable(object).find(call); !found.empty()) return found;
    } catch (const Unreadable&) {
        return kUnknown;  // an object without a readable line table runs all the same
    }
    return kUnknown;
}

}  // namespace kvjit::emulation
