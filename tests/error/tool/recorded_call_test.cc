// Damaged and hostile files: each is refused with a sentence that says what and where, and none is read out of bounds.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "recorded_call.h"
#include "recorded_file.h"
#include "safetensors.h"
#include "support/memory_file.h"

namespace kvjit::test {
namespace {

using nlohmann::json;

/// The error of reading these bytes as a recorded call; empty if they are one.
std::string error_of(const std::vector<std::byte>& bytes, std::size_t size = 0) {
    const MemoryFile memory(bytes, size);
    const auto file = tool::SafetensorsFile::open(memory.path());
    if (!file) return file.error();
    const auto call = tool::read_recorded_call(*file);
    return call ? "" : call.error();
}

/// The error of reading a golden file that `damage` has changed.
std::string error_after(const std::function<void(RecordedFile&)>& damage, const char* golden = "002_") {
    RecordedFile file(golden_file(golden));
    damage(file);
    return error_of(file.assemble());
}

/// The same, where one field of one entry of the header has another value.
std::string error_with(const char* entry, const char* field, const json& value) {
    return error_after([&](RecordedFile& file) { file.header[entry][field] = value; });
}

std::string error_of_meta(const char* field, const json& value) {
    return error_with("__metadata__", field, value);
}
std::string error_of_query(const char* field, const json& value) {
    return error_with("query", field, value);
}

#define CHECK_SAYS(error, part) CHECK_MESSAGE(std::string(error).find(part) != std::string::npos, error)

TEST_CASE("a golden file is a recorded call") {
    for (const char* golden : {"000_", "002_"}) CHECK(error_after([](RecordedFile&) {}, golden) == "");
}

TEST_CASE("metadata that is missing, unknown or wrong") {
    CHECK_SAYS(error_after([](RecordedFile& file) { file.header["__metadata__"].erase("head_dim"); }),
               "metadata field 'head_dim' is missing");
    CHECK_SAYS(error_of_meta("wings", "2"), "metadata field 'wings' is unknown");
    CHECK_SAYS(error_of_meta("head_dim", "thirty"), "metadata field 'head_dim' is 'thirty', expected an integer");
    CHECK_SAYS(error_of_meta("head_dim", "32 "), "'head_dim' is '32 '");
    CHECK_SAYS(error_of_meta("num_kv_heads", "3"), "a divisor of num_heads 4");
    CHECK_SAYS(error_of_meta("t1", "fp8"), "'t1' is 'fp8', expected one of f32 f16 bf16");
    CHECK_SAYS(error_of_meta("t2", "i8"), "'t2' is 'i8'");
    CHECK_SAYS(error_of_meta("layer_idx", "1"), "'layer_idx' is '1', expected an integer from 0 to 0");
    CHECK_SAYS(error_of_meta("layout_order", "TLD"), "'layout_order'");
    CHECK_SAYS(error_of_meta("layout_order", "TL2HD2HD"), "'layout_order'");
    CHECK_SAYS(error_of_meta("softmax_scale", "nan"), "'softmax_scale'");
    CHECK_SAYS(error_of_meta("softmax_scale", "1e99"), "'softmax_scale'");
    CHECK_SAYS(error_of_meta("window_left", "-2"), "'window_left' is '-2', expected 0 or more, or -1 for all keys");
    CHECK_SAYS(error_of_meta("window_right", "1.5"), "'window_right' is '1.5'");
    CHECK_SAYS(error_of_meta("soft_cap", "-1"), "'soft_cap' is '-1', expected a finite number above 0");
    CHECK_SAYS(error_of_meta("soft_cap", "inf"), "'soft_cap' is 'inf'");
    CHECK_SAYS(error_of_meta("soft_cap", "nan"), "'soft_cap' is 'nan'");
    CHECK(error_of_meta("soft_cap", "0") == "");
    CHECK(error_of_meta("window_left", "-1") == "");
    CHECK_SAYS(error_of_meta("format", "kvjit.case.2"), "'format' is 'kvjit.case.2', expected kvjit.case.1");
    CHECK_SAYS(error_of_meta("format", "kvjit.case.3"),
               "'format' is 'kvjit.case.3', expected kvjit.case.1, a reference");
    CHECK(error_of_meta("format", "kvjit.case.1") == "");
    CHECK_SAYS(error_after([](RecordedFile& file) {
                   file.header["__metadata__"].erase("format");
                   file.header["__metadata__"].erase("op");
               }),
               "'format' is missing, expected kvjit.case.1, a reference case, or kvjit.case.2, a recording");
    CHECK_SAYS(error_of_meta("head_dim", "\x1b[31m"), "\\x1b[31m");
    CHECK(error_of_meta("pmx_remark", "free text") == "");
    CHECK_SAYS(error_of_meta("strides.query", "128,32,1"), "metadata field 'strides.query' is unknown");
    CHECK_SAYS(error_of_meta("t1", 7), "metadata field 't1' is not a string");
}

/// The error of a golden file without PMX's number for its layout.
std::string error_without_pmx_number(const char* golden) {
    return error_after(
        [](RecordedFile& file) {
            file.header["__metadata__"].erase("pmx_revision");
            file.header["__metadata__"].erase("cache_layout");
        },
        golden);
}

TEST_CASE("PMX's number of a layout may be missing only where PMX has none") {
    for (const char* golden : {"048_", "051_", "054_", "057_", "060_", "061_"}) {
        CAPTURE(golden);
        CHECK(error_without_pmx_number(golden) == "");
    }
    for (const char* golden : {"000_", "003_", "006_", "009_", "030_", "033_"}) {
        CAPTURE(golden);
        CHECK_SAYS(error_without_pmx_number(golden), "' is missing");
    }
    CHECK_SAYS(error_after([](RecordedFile& file) { file.header["__metadata__"].erase("cache_layout"); }),
               "metadata field 'cache_layout' is missing");
    CHECK_SAYS(error_after([](RecordedFile& file) { file.header["__metadata__"]["pmx_revision"] = "3"; }, "060_"),
               "metadata field 'pmx_revision' is '3', expected one of 1 2");
}

TEST_CASE("tensors that are missing, unknown or wrong") {
    CHECK_SAYS(error_after([](RecordedFile& file) {
                   file.header["q"] = file.header["query"];
                   file.header.erase("query");
               }),
               "tensor 'query' is missing");
    CHECK_SAYS(error_of_query("dtype", "BF16"), "tensor 'query' has dtype BF16, expected F16");
    CHECK_SAYS(error_of_query("shape", json::array({5, 2, 64})),
               "tensor 'query' has shape [5, 2, 64], expected [5, 4, 32]");
    CHECK_SAYS(error_after([](RecordedFile& file) { file.header["extra"] = file.header["query"]; }), "overlap");
    CHECK_SAYS(error_after([](RecordedFile& file) {
                   const std::size_t end = file.data.size();
                   file.header["extra"] = {{"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {end, end}}};
               }),
               "tensor 'extra' is unknown");
    CHECK_SAYS(error_after([](RecordedFile& file) { file.tensor_bytes("seqstarts")[23] = std::byte{0xff}; }),
               "tensor 'seqstarts' ends with -");
}

TEST_CASE("headers that lie about the file") {
    const std::uint64_t huge = std::uint64_t{1} << 62;
    CHECK_SAYS(error_of_query("dtype", "F17"), "tensor 'query': dtype is 'F17'");
    CHECK_SAYS(error_of_query("dtype", 3), "dtype is missing or not a string");
    CHECK_SAYS(error_of_query("shape", json::array({huge, huge, 4})), "more bytes than can be counted");
    CHECK_SAYS(error_of_query("shape", json::array({-1})), "shape holds -1");
    CHECK_SAYS(error_of_query("shape", json::array({1.5})), "shape holds 1.5");
    CHECK_SAYS(error_of_query("shape", json::array({std::uint64_t{1} << 63})), "shape holds 9223372036854775808");
    CHECK_SAYS(error_of_query("shape", "wide"), "shape is missing or not a list");
    CHECK_SAYS(error_of_query("data_offsets", json::array({0, huge})), "data_offsets are [0, 4611686018427387904]");
    CHECK_SAYS(error_of_query("data_offsets", json::array({8, 4})), "data_offsets are [8, 4]");
    CHECK_SAYS(error_of_query("data_offsets", json::array({0})), "data_offsets are [0]");
    CHECK_SAYS(error_of_query("data_offsets", json::array({0, 4})), "data_offsets span 4 bytes, expected 1280");
    CHECK_SAYS(error_after([](RecordedFile& file) { file.data.push_back(std::byte{0}); }),
               "1 bytes follow the last tensor");
    CHECK_SAYS(error_after([](RecordedFile& file) { file.header["query"] = "none"; }),
               "something other than a JSON object");
}

std::vector<std::byte> with_header(const std::string& text, std::uint64_t claimed) {
    std::vector<std::byte> bytes(8);
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(claimed >> (8 * i));
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
    return bytes;
}

TEST_CASE("files that are no safetensors files") {
    CHECK_SAYS(error_of({}), "has 0 bytes");
    CHECK_SAYS(error_of(with_header("{}", 3)), "header length is 3, but 2 bytes follow it");
    CHECK_SAYS(error_of(with_header("{}", ~std::uint64_t{0})), "header length is 18446744073709551615");
    CHECK_SAYS(error_of(with_header("{,}", 3)), "not valid JSON");
    CHECK_SAYS(error_of(with_header("\"\xff\"", 3)), "not valid JSON");
    CHECK_SAYS(error_of(with_header("[]", 2)), "not an object");
    CHECK_SAYS(error_of(with_header(R"({"a":1,"a":2})", 13)), "names 'a' twice");
    CHECK_SAYS(error_of(with_header(R"({"__metadata__":{"a":"1","a":"2"}})", 34)), "names 'a' twice");
    const std::string deep(200'000, '[');
    CHECK_SAYS(error_of(with_header(deep, deep.size())), "not valid JSON");
}

/// A file whose only tensor is `tensor`, JSON that need not be right.
std::string error_of_tensor(const std::string& tensor) {
    const std::string text = R"({"query":)" + tensor + "}";
    return error_of(with_header(text, text.size()));
}

std::string repeated(const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}

std::string nested_list(std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
}
std::string nested_object(std::size_t levels) {
    return repeated(R"({"a":)", levels) + "1" + std::string(levels, '}');
}

TEST_CASE("a header may nest as deeply as it likes") {
    for (const std::size_t levels : {std::size_t{9}, std::size_t{100'000}, std::size_t{1'000'000}}) {
        CAPTURE(levels);
        for (const std::string& deep : {nested_list(levels), nested_object(levels)}) {
            const std::string query = R"({"dtype":"F32","shape":)";
            CHECK_SAYS(error_of_tensor(query + "[" + deep + R"(],"data_offsets":[0,4]})"), "header nests lists");
            CHECK_SAYS(error_of_tensor(query + R"([1],"data_offsets":[)" + deep + ",4]}"), "header nests lists");
            CHECK_SAYS(error_of_tensor(deep), "header nests lists");
        }
    }
}

TEST_CASE("what a size is instead of a number is said in a few words") {
    CHECK_SAYS(error_of_query("shape", json::array({json::array({1, 2})})), "shape holds a list, expected integers");
    CHECK_SAYS(error_of_query("data_offsets", json::array({json::object(), 4})),
               "data_offsets holds an object, expected integers");
    CHECK_SAYS(error_of_query("shape", json::array({"2"})), "shape holds '2', expected integers");
    CHECK_SAYS(error_of_query("shape", json::array({true})), "shape holds true, expected integers");
    CHECK_SAYS(error_of_query("shape", json::array({nullptr})), "shape holds null, expected integers");
    const std::string longest(1'000'000, 'x');
    CHECK_SAYS(error_of_query("shape", json::array({longest})), "shape holds 'xxxxxx");
    CHECK(error_of_query("shape", json::array({longest})).size() < 300);
    CHECK(error_of_query("shape", json(std::vector<int>(100'000, 1))).size() < 500);
    CHECK(error_of_query("dtype", longest).size() < 300);
    std::string euros;
    for (int i = 0; i < 100; ++i) euros += "\xe2\x82\xac";
    CHECK(tool::in_quotes(euros) == "'" + euros.substr(0, 99) + "...', 300 bytes");
    CHECK(error_of_meta("head_dim", longest).size() < 300);
    CHECK(error_of_meta(longest.c_str(), "2").size() < 300);
}

TEST_CASE("quoted text can't drive a terminal, and stays what it was where it is text") {
    CHECK(tool::in_quotes("a\x1b[2J\n\x7f") == "'a\\x1b[2J\\x0a\\x7f'");
    CHECK(tool::in_quotes("Gr\xc3\xb6\xc3\x9f"
                          "e \xe2\x82\xac \xf0\x9f\x98\x80") ==
          "'Gr\xc3\xb6\xc3\x9f"
          "e \xe2\x82\xac \xf0\x9f\x98\x80'");
    CHECK(tool::in_quotes("\xc2\x9b"
                          "2J") == "'\\xc2\\x9b2J'");  // U+009B, which terminals take for ESC [
    CHECK(tool::in_quotes("\x9b"
                          "2J") == "'\\x9b2J'");
    CHECK(tool::in_quotes("\xc3") == "'\\xc3'");
    CHECK(tool::in_quotes("\xe0\x82\x9b") == "'\\xe0\\x82\\x9b'");  // the same, overlong
    CHECK(tool::in_quotes("\xe2\x82") == "'\\xe2\\x82'");
}

constexpr std::size_t kLargest = std::size_t{1} << 42;  // holes and all; no machine has as much memory

TEST_CASE("of a large file no more is read than what tells that it is none") {
    CHECK_SAYS(error_of({}, kLargest), "header is not valid JSON");  // its length is 0
    CHECK_SAYS(error_of(with_header("{}", kLargest - 8), kLargest),
               "header length is 4398046511096; kvjit reads at most 33554432");
    CHECK_SAYS(error_of(with_header("{}", 2), kLargest), "4398046511094 bytes follow the last tensor, expected none");
}

TEST_CASE("a call that memory can't hold is refused before any of it is read") {
    RecordedFile file(golden_file("002_"));
    const std::size_t end = file.data.size();
    const std::string before = file.header.dump();
    auto& query = file.header["query"];
    const std::size_t bytes = kLargest;
    query["shape"] = {bytes / 2 / 128, 4, 32};
    file.data.clear();
    // All others lie behind it, where they were in front of or behind it before.
    const auto old = json::parse(before)["query"]["data_offsets"];
    for (auto& [name, tensor] : file.header.items()) {
        if (name == "__metadata__" || name == "query") continue;
        for (auto& offset : tensor["data_offsets"]) {
            if (offset.get<std::size_t>() >= old[1].get<std::size_t>()) {
                offset = offset.get<std::size_t>() - (old[1].get<std::size_t>() - old[0].get<std::size_t>());
            }
        }
    }
    const std::size_t others = end - (old[1].get<std::size_t>() - old[0].get<std::size_t>());
    query["data_offsets"] = {others, others + bytes};
    const auto header = file.assemble();
    CHECK_SAYS(error_of(header, header.size() + others + bytes),
               "replaying takes twice as much memory; available are ");
}

TEST_CASE("a header may name many tensors") {
    std::string text = "{";
    constexpr int kTensors = 300'000;
    for (int i = 0; i < kTensors; ++i) {
        text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
                std::to_string(i) + "," + std::to_string(i + 1) + "]}";
    }
    text += "}";
    auto bytes = with_header(text, text.size());
    bytes.resize(bytes.size() + kTensors);
    const MemoryFile memory(bytes);
    const auto file = tool::SafetensorsFile::open(memory.path());
    REQUIRE(file.has_value());
    CHECK(file->tensors().size() == kTensors);
    CHECK(file->tensors().at("777").begin == 777);
}

TEST_CASE("every truncation is refused") {
    const auto whole = RecordedFile(golden_file("016_")).assemble();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CHECK(error_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}) != "");
    }
}

}  // namespace
}  // namespace kvjit::test
