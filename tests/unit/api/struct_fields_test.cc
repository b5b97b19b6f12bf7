// What the library tells of its structs is what the headers say: read here as text, so that none is forgotten.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "kvjit/blocks.h"

namespace {

/// A field as the library tells it, or as the header has it.
struct Field {
    std::string struct_name, name, type;

    std::string text() const { return struct_name + "." + name + ": " + type; }
};

struct Told : Field {
    std::size_t offset, size;
};

std::vector<Told> told_fields() {
    std::vector<Told> all;
    kvjit_struct_fields(
        [](void* to, const char* struct_name, const char* name, const char* type, std::size_t offset,
           std::size_t size) {
            static_cast<std::vector<Told>*>(to)->push_back({{struct_name, name, type}, offset, size});
        },
        &all);
    return all;
}

/// On one line.
std::string headers_without_comments() {
    std::string text;
    for (const char* name : {"kvjit.h", "blocks.h"}) {
        std::ifstream file(std::string(KVJIT_HEADERS) + name);
        text.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    for (std::size_t begin = 0; (begin = text.find("/*")) != std::string::npos;) {
        text.replace(begin, text.find("*/", begin) + 2 - begin, " ");
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

/// "int64_t shape[KVJIT_MAX_RANK]" as the library should tell it.
Field field_of(const std::string& struct_name, const std::string& declaration) {
    std::smatch part;
    if (std::regex_search(declaration, part, std::regex(R"(\(\s*\*\s*(\w+)\s*\))"))) {
        return {struct_name, part[1], "pointer"};
    }
    REQUIRE_MESSAGE(std::regex_match(declaration, part, std::regex(R"(\s*(.*?)(\w+)(\[(\w+)\])?\s*)")), declaration);
    const std::string name = part[2], extent = part[4] == "KVJIT_MAX_RANK" ? std::to_string(KVJIT_MAX_RANK) : part[4];
    const std::string before = part[1];
    if (before.find('*') != std::string::npos) return {struct_name, name, "pointer"};
    const std::string type = before.substr(0, before.find_last_not_of(' ') + 1);
    const std::string known = type == "size_t" ? "uint64_t" : type;
    return {struct_name, name, extent.empty() ? known : known + "[" + extent + "]"};
}

std::map<std::string, std::vector<std::string>> by_struct(const std::vector<Field>& fields) {
    std::map<std::string, std::vector<std::string>> structs;
    for (const Field& field : fields) structs[field.struct_name].push_back(field.text());
    return structs;
}

std::vector<Field> header_fields() {
    std::vector<Field> all;
    const std::string text = headers_without_comments();
    const std::regex whole(R"(typedef struct (\w+) \{([^{}]*)\} (\w+);)"), one(R"(([^;]*);)");
    for (std::sregex_iterator found(text.begin(), text.end(), whole), end; found != end; ++found) {
        const std::string name = (*found)[1], body = (*found)[2];
        for (std::sregex_iterator field(body.begin(), body.end(), one); field != end; ++field) {
            all.push_back(field_of(name, (*field)[1]));
        }
    }
    return all;
}

std::size_t type_bytes(const std::string& type) {
    static const std::map<std::string, std::size_t> kBytes = {
        {"char", 1},     {"int32_t", 4}, {"uint32_t", 4},
        {"int64_t", 8},  {"float", 4},   {"double", 8},
        {"uint64_t", 8}, {"pointer", 8}, {"kvjit_tensor", sizeof(kvjit_tensor)}};
    const std::size_t bracket = type.find('[');
    const std::size_t bytes = kBytes.at(type.substr(0, bracket));
    return bracket == std::string::npos ? bytes : bytes * std::stoul(type.substr(bracket + 1));
}

}  // namespace

TEST_CASE("every struct of the headers is told, with all of its fields in order") {
    std::vector<Field> told;
    for (const Told& field : told_fields()) told.push_back(field);
    const auto wanted = by_struct(header_fields()), got = by_struct(told);
    CHECK(wanted.size() >= 11);
    for (const auto& [name, fields] : wanted) {
        CAPTURE(name);
        REQUIRE(got.count(name) == 1);
        CHECK(got.at(name) == fields);
    }
    CHECK(got.size() == wanted.size());
}

TEST_CASE("a struct's size is the compiler's; names that there are not have none") {
    CHECK(kvjit_struct_size("kvjit_error") == sizeof(kvjit_error));
    CHECK(kvjit_struct_size("kvjit_tensor") == sizeof(kvjit_tensor));
    CHECK(kvjit_struct_size("kvjit_spec") == sizeof(kvjit_spec));
    CHECK(kvjit_struct_size("kvjit_engine_options") == sizeof(kvjit_engine_options));
    CHECK(kvjit_struct_size("kvjit_engine_stats") == sizeof(kvjit_engine_stats));
    CHECK(kvjit_struct_size("kvjit_executor") == sizeof(kvjit_executor));
    CHECK(kvjit_struct_size("kvjit_batch") == sizeof(kvjit_batch));
    CHECK(kvjit_struct_size("kvjit_plan_options") == sizeof(kvjit_plan_options));
    CHECK(kvjit_struct_size("kvjit_tensors") == sizeof(kvjit_tensors));
    CHECK(kvjit_struct_size("kvjit_blocks") == sizeof(kvjit_blocks));
    CHECK(kvjit_struct_size("kvjit_blocks_options") == sizeof(kvjit_blocks_options));
    for (const char* none : {"", "kvjit", "kvjit_bat", "kvjit_batch ", "kvjit_engine", "KVJIT_BATCH"}) {
        CAPTURE(none);
        CHECK(kvjit_struct_size(none) == 0);
    }
    CHECK(kvjit_struct_size(nullptr) == 0);
    kvjit_struct_fields(nullptr, nullptr);
}

TEST_CASE("fields lie one after the other, as large as their types, aligned, inside of their structs") {
    std::set<std::string> ended;
    std::string current;
    std::size_t end = 0;
    for (const Told& field : told_fields()) {
        CAPTURE(field.text());
        if (field.struct_name != current) {
            CHECK(ended.insert(field.struct_name).second);
            current = field.struct_name, end = 0;
        }
        if (field.type == "kvjit_tensor") CHECK(ended.count("kvjit_tensor") == 1);
        CHECK(field.size == type_bytes(field.type));
        CHECK(field.offset >= end);
        CHECK(field.offset < end + 8);
        CHECK(field.offset % std::min<std::size_t>(8, type_bytes(field.type.substr(0, field.type.find('[')))) == 0);
        end = field.offset + field.size;
        CHECK(end <= kvjit_struct_size(current.c_str()));
    }
}
