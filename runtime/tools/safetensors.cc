#include "safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "terminal.h"

namespace kvjit::tool {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr int kMaxDepth = 8;             // a good header has 3 levels; more are kept for errors that name the field
constexpr std::size_t kMaxQuoted = 100;  // bytes of a text that an error repeats
constexpr std::size_t kMaxExtentsShown = 16;

struct Dtype {
    std::string_view name;
    std::size_t bytes;
};
constexpr std::array kDtypes = {Dtype{"BOOL", 1}, Dtype{"U8", 1},  Dtype{"I8", 1},  Dtype{"F8_E5M2", 1},
                                Dtype{"U16", 2},  Dtype{"I16", 2}, Dtype{"F16", 2}, Dtype{"F8_E4M3", 1},
                                Dtype{"U32", 4},  Dtype{"I32", 4}, Dtype{"F32", 4}, Dtype{"BF16", 2},
                                Dtype{"U64", 8},  Dtype{"I64", 8}, Dtype{"F64", 8}};

const char* kind_of_file(mode_t mode) {
    switch (mode & S_IFMT) {
        case S_IFREG:
            return "a regular file";
        case S_IFDIR:
            return "a directory";
        case S_IFIFO:
            return "a FIFO";
        case S_IFSOCK:
            return "a socket";
        case S_IFCHR:
        case S_IFBLK:
            return "a device";
        default:
            return "something unknown";
    }
}

using OpenFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Null with errno. A FIFO is opened at once, with or without a writer; a regular file ignores O_NONBLOCK.
OpenFile open_without_waiting(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    OpenFile file(descriptor < 0 ? nullptr : fdopen(descriptor, "rb"), std::fclose);
    if (!file && descriptor >= 0) close(descriptor);
    return file;
}

Result<std::vector<std::byte>> read_regular_file(const std::string& path) {
    const auto refuse = [&](const std::string& why) { return fail(escaped(path) + ": " + why); };
    const OpenFile file = open_without_waiting(path);
    const int why_not = errno;
    struct stat status = {};
    // Sockets can't be opened, but they can be named.
    const bool known = (file ? fstat(fileno(file.get()), &status) : stat(path.c_str(), &status)) == 0;
    if (known && !S_ISREG(status.st_mode)) {
        return refuse(std::string("is ") + kind_of_file(status.st_mode) + ", expected a regular file");
    }
    if (!file || !known) return refuse(std::string("can't be read: ") + std::strerror(file ? errno : why_not));
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), file.get());
    if (got == bytes.size()) return bytes;
    return refuse("only " + std::to_string(got) + " of " + std::to_string(bytes.size()) + " bytes could be read");
}

std::uint64_t little_endian(const std::byte* bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return value;
}

/// Parses the header and refuses names that stand twice, which the JSON library would silently merge. What lies deeper
/// than any header goes is never kept: much in that library recurses over what it holds.
Result<Json> parse_header(std::string_view text) {
    std::array<std::set<std::string>, kMaxDepth> names;  // of the objects around the place, outermost first
    std::string twice;
    bool too_deep = false;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
        const bool begins = event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start;
        if (begins && depth >= kMaxDepth) {
            too_deep = true;
            return false;
        }
        if (event == Json::parse_event_t::object_start) names[static_cast<std::size_t>(depth)].clear();
        if (event != Json::parse_event_t::key || depth > kMaxDepth) return true;
        auto name = parsed.get<std::string>();
        if (!names[static_cast<std::size_t>(depth) - 1].insert(name).second) twice = std::move(name);
        return true;
    };
    Json header = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
    if (header.is_discarded()) return fail("the header is not valid JSON");
    if (too_deep) {
        return fail("the header nests lists and objects more than " + std::to_string(kMaxDepth) + " deep");
    }
    if (!header.is_object()) return fail("the header is JSON, but not an object");
    if (!twice.empty()) return fail("the header names " + in_quotes(twice) + " twice");
    return header;
}

Result<std::map<std::string, std::string>> parse_metadata(const Json& json) {
    if (!json.is_object()) return fail("__metadata__ is not a JSON object");
    std::map<std::string, std::string> metadata;
    for (const auto& [name, value] : json.items()) {
        if (!value.is_string()) return fail("metadata field " + in_quotes(name) + " is not a string");
        metadata[name] = value.get<std::string>();
    }
    return metadata;
}

/// What stands in a header instead of a size, in a few words.
std::string found_text(const Json& value) {
    if (value.is_array()) return "a list";
    if (value.is_object()) return "an object";
    return value.is_string() ? in_quotes(value.get_ref<const std::string&>()) : value.dump();
}

/// A JSON list of sizes, each within int64.
Result<std::vector<std::int64_t>> parse_sizes(const Json& tensor, const char* field) {
    const auto found = tensor.find(field);
    if (found == tensor.end() || !found->is_array()) return fail(std::string(field) + " is missing or not a list");
    std::vector<std::int64_t> sizes;
    for (const Json& size : *found) {
        if (!size.is_number_unsigned() ||
            size.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
            return fail(std::string(field) + " holds " + found_text(size) + ", expected integers from 0 to 2^63-1");
        }
        sizes.push_back(size.get<std::int64_t>());
    }
    return sizes;
}

Result<std::size_t> shape_bytes(const TensorInfo& tensor) {
    std::size_t bytes = safetensors_element_bytes(tensor.dtype);
    for (const std::int64_t extent : tensor.shape) {
        if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) {
            return fail("shape " + shape_text(tensor.shape) + " has more bytes than can be counted");
        }
    }
    return bytes;
}

Result<TensorInfo> parse_tensor(const Json& json, std::size_t data_bytes) {
    if (!json.is_object()) return fail("is described by something other than a JSON object");
    TensorInfo tensor;
    const auto dtype = json.find("dtype");
    if (dtype == json.end() || !dtype->is_string()) return fail("dtype is missing or not a string");
    tensor.dtype = dtype->get<std::string>();
    if (safetensors_element_bytes(tensor.dtype) == 0) {
        return fail("dtype is " + in_quotes(tensor.dtype) + ", which is none of the format's");
    }
    auto shape = parse_sizes(json, "shape");
    if (!shape) return fail(shape.error());
    tensor.shape = std::move(*shape);
    const auto offsets = parse_sizes(json, "data_offsets");
    if (!offsets) return fail(offsets.error());
    if (offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] ||
        static_cast<std::uint64_t>((*offsets)[1]) > data_bytes) {
        return fail("data_offsets are " + shape_text(*offsets) + ", expected [begin, end] within the file's 0.." +
                    std::to_string(data_bytes));
    }
    tensor.begin = static_cast<std::size_t>((*offsets)[0]);
    tensor.end = static_cast<std::size_t>((*offsets)[1]);
    const auto expected = shape_bytes(tensor);
    if (!expected) return fail(expected.error());
    if (*expected != tensor.end - tensor.begin) {
        return fail("data_offsets span " + std::to_string(tensor.end - tensor.begin) + " bytes, expected " +
                    std::to_string(*expected) + " for " + tensor.dtype + " " + shape_text(tensor.shape));
    }
    return tensor;
}

/// The format allows neither overlaps nor holes: either means that a header and its data do not belong together.
Result<void> check_coverage(const std::map<std::string, TensorInfo>& tensors, std::size_t data_bytes) {
    std::vector<std::pair<TensorInfo, std::string>> order;
    for (const auto& [name, tensor] : tensors) order.emplace_back(tensor, name);
    std::ranges::sort(order, {}, [](const auto& entry) { return std::pair(entry.first.begin, entry.first.end); });
    std::size_t end = 0;
    for (const auto& [tensor, name] : order) {
        if (tensor.begin != end) {
            return fail("tensor " + in_quotes(name) + " begins at byte " + std::to_string(tensor.begin) +
                        ", expected " + std::to_string(end) + ": tensors " +
                        (tensor.begin < end ? "overlap" : "leave a hole"));
        }
        end = tensor.end;
    }
    if (end != data_bytes) {
        return fail(std::to_string(data_bytes - end) + " bytes follow the last tensor, expected none");
    }
    return {};
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::read(const std::string& path) {
    auto bytes = read_regular_file(path);
    if (!bytes) return fail(bytes.error());
    return parse(path, std::move(*bytes));
}

Result<SafetensorsFile> SafetensorsFile::parse(std::string path, std::vector<std::byte> bytes) {
    const auto refuse = [&](const std::string& why) { return fail(escaped(path) + ": " + why); };
    if (bytes.size() < kLengthBytes) {
        return refuse("has " + std::to_string(bytes.size()) + " bytes, too few for a safetensors file");
    }
    const std::uint64_t header_bytes = little_endian(bytes.data());
    if (header_bytes > bytes.size() - kLengthBytes || header_bytes > kMaxHeaderBytes) {
        return refuse("header length is " + std::to_string(header_bytes) + ", but " +
                      std::to_string(bytes.size() - kLengthBytes) +
                      " bytes follow it: truncated, or not a safetensors file");
    }
    SafetensorsFile file;
    file.data_begin_ = kLengthBytes + static_cast<std::size_t>(header_bytes);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, header_bytes);
    const auto header = parse_header(text);
    if (!header) return refuse(header.error());
    const std::size_t data_bytes = bytes.size() - file.data_begin_;
    for (const auto& [name, json] : header->items()) {
        if (name == "__metadata__") {
            auto metadata = parse_metadata(json);
            if (!metadata) return refuse(metadata.error());
            file.metadata_ = std::move(*metadata);
            continue;
        }
        auto tensor = parse_tensor(json, data_bytes);
        if (!tensor) return refuse("tensor " + in_quotes(name) + ": " + tensor.error());
        file.tensors_[name] = std::move(*tensor);
    }
    if (auto covered = check_coverage(file.tensors_, data_bytes); !covered) return refuse(covered.error());
    file.path_ = std::move(path);
    file.data_ = std::move(bytes);
    return file;
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorInfo& tensor) const {
    return std::span(data_).subspan(data_begin_ + tensor.begin, tensor.end - tensor.begin);
}

std::size_t safetensors_element_bytes(std::string_view dtype) {
    const auto found = std::ranges::find(kDtypes, dtype, &Dtype::name);
    return found == kDtypes.end() ? 0 : found->bytes;
}

std::string shape_text(std::span<const std::int64_t> shape) {
    std::string text = "[";
    for (const std::int64_t extent : shape.first(std::min(shape.size(), kMaxExtentsShown))) {
        text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    }
    return text + (shape.size() > kMaxExtentsShown ? ", ...: " + std::to_string(shape.size()) + " in all]" : "]");
}

std::string in_quotes(std::string_view text) {
    if (text.size() <= kMaxQuoted) return "'" + escaped(text) + "'";
    std::size_t shown = kMaxQuoted;
    const auto continues = [&] { return (static_cast<unsigned char>(text[shown]) & 0xc0) == 0x80; };
    while (continues() && shown > kMaxQuoted - 4) --shown;  // a character stays whole
    return "'" + escaped(text.substr(0, shown)) + "...', " + std::to_string(text.size()) + " bytes";
}

}  // namespace kvjit::tool
