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

namespace kvjit::tool {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 32 << 20;  // parsing takes many times as much; the format allows 100 MB
constexpr std::size_t kMaxDepth = 8;  // a good header has 3 levels; more are kept for errors that name the field
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

using OpenFile = std::shared_ptr<std::FILE>;

/// Null, with errno. A FIFO is opened at once, with or without a writer; a regular file ignores O_NONBLOCK.
OpenFile open_without_waiting(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    std::FILE* const file = descriptor < 0 ? nullptr : fdopen(descriptor, "rb");
    if (file == nullptr && descriptor >= 0) close(descriptor);
    return file == nullptr ? nullptr : OpenFile(file, std::fclose);
}

struct RegularFile {
    OpenFile file;
    std::size_t bytes;
};

Result<RegularFile> open_regular_file(const std::string& path) {
    const OpenFile file = open_without_waiting(path);
    const int why_not = errno;
    struct stat status = {};
    // stat says what a socket is, which can't be opened.
    const bool known = (file ? fstat(fileno(file.get()), &status) : stat(path.c_str(), &status)) == 0;
    if (known && !S_ISREG(status.st_mode)) {
        return fail(std::string("is ") + kind_of_file(status.st_mode) + ", expected a regular file");
    }
    if (file && known) return RegularFile{file, static_cast<std::size_t>(status.st_size)};
    return fail(std::string("can't be read: ") + std::strerror(file ? errno : why_not));
}

Result<void> read_at(const OpenFile& file, std::size_t offset, std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t got =
            pread(fileno(file.get()), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(std::string("can't be read: ") + std::strerror(errno));
        if (got == 0) {
            return fail("only " + std::to_string(done) + " of " + std::to_string(out.size()) + " bytes at byte " +
                        std::to_string(offset) + " could be read");
        }
        done += static_cast<std::size_t>(got);
    }
    return {};
}

std::uint64_t little_endian(const std::byte* bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return value;
}

/// Looks through a header for what parsing would hide or not survive: names that stand twice, which the JSON library
/// silently merges; and depth, over which much in that library recurses. The library's own callback for parsing would
/// see both, but costs the square of the number of names.
class HeaderWatch : public nlohmann::json_sax<Json> {
public:
    bool too_deep() const { return deepest_ > kMaxDepth; }
    const std::string& twice() const { return twice_; }

    bool start_object(std::size_t) override {
        if (depth_ < kMaxDepth) names_[depth_].clear();
        return enter();
    }
    bool start_array(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool end_array() override { return leave(); }
    bool key(string_t& name) override {
        if (depth_ > kMaxDepth) return true;
        if (!names_[depth_ - 1].insert(name).second) twice_ = name;
        return true;
    }
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

private:
    bool enter() {
        deepest_ = std::max(deepest_, ++depth_);
        return true;
    }
    bool leave() {
        --depth_;
        return true;
    }

    std::array<std::set<std::string>, kMaxDepth> names_;  // of the objects around the place, outermost first
    std::size_t depth_ = 0;
    std::size_t deepest_ = 0;
    std::string twice_;
};

Result<Json> parse_header(const std::string& text) {
    HeaderWatch watch;
    if (!Json::sax_parse(text, &watch)) return fail("the header is not valid JSON");
    if (watch.too_deep()) {
        return fail("the header nests lists and objects more than " + std::to_string(kMaxDepth) + " deep");
    }
    Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!header.is_object()) return fail("the header is JSON, but not an object");
    if (!watch.twice().empty()) return fail("the header names " + in_quotes(watch.twice()) + " twice");
    return header;
}

/// The header: the bytes between its length and the data.
Result<std::string> read_header(const RegularFile& file) {
    if (file.bytes < kLengthBytes) {
        return fail("has " + std::to_string(file.bytes) + " bytes, too few for a safetensors file");
    }
    std::array<std::byte, kLengthBytes> length;
    if (auto read = read_at(file.file, 0, length); !read) return fail(read.error());
    const std::uint64_t bytes = little_endian(length.data());
    if (bytes > file.bytes - kLengthBytes) {
        return fail("header length is " + std::to_string(bytes) + ", but " + std::to_string(file.bytes - kLengthBytes) +
                    " bytes follow it: truncated, or not a safetensors file");
    }
    if (bytes > kMaxHeaderBytes) {
        return fail("header length is " + std::to_string(bytes) + "; kvjit reads at most " +
                    std::to_string(kMaxHeaderBytes));
    }
    std::string text(static_cast<std::size_t>(bytes), '\0');
    auto read = read_at(file.file, kLengthBytes, std::as_writable_bytes(std::span(text)));
    return read ? Result<std::string>(std::move(text)) : fail(read.error());
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

/// What a header has instead of a size, in a few words.
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
    std::vector<const std::pair<const std::string, TensorInfo>*> order;
    for (const auto& entry : tensors) order.push_back(&entry);
    std::ranges::sort(order, {}, [](const auto* entry) { return std::pair(entry->second.begin, entry->second.end); });
    std::size_t end = 0;
    for (const auto* entry : order) {
        const auto& [name, tensor] = *entry;
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

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
    const auto refuse = [&](const std::string& why) { return fail(escaped(path) + ": " + why); };
    const auto opened = open_regular_file(path);
    if (!opened) return refuse(opened.error());
    const auto header = read_header(*opened);
    if (!header) return refuse(header.error());
    SafetensorsFile file;
    file.path_ = path;
    file.file_ = opened->file;
    file.data_begin_ = kLengthBytes + header->size();
    file.data_bytes_ = opened->bytes - file.data_begin_;
    if (auto taken = file.take_header(*header); !taken) return refuse(taken.error());
    return file;
}

Result<void> SafetensorsFile::take_header(const std::string& text) {
    const auto header = parse_header(text);
    if (!header) return fail(header.error());
    for (const auto& [name, json] : header->items()) {
        if (name == "__metadata__") {
            auto metadata = parse_metadata(json);
            if (!metadata) return fail(metadata.error());
            metadata_ = std::move(*metadata);
            continue;
        }
        auto tensor = parse_tensor(json, data_bytes_);
        if (!tensor) return fail("tensor " + in_quotes(name) + ": " + tensor.error());
        tensors_[name] = std::move(*tensor);
    }
    return check_coverage(tensors_, data_bytes_);
}

Result<void> SafetensorsFile::read(const TensorInfo& tensor, std::span<std::byte> out) const {
    return read_at(file_, data_begin_ + tensor.begin, out);
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

}  // namespace kvjit::tool
