// The host's table of element types, against kvjit.h and what kernels know of them.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "common/types.h"
#include "generator/element_type.h"

using namespace kvjit::gen;

namespace {

/// Numbers of kvjit_dtype as the header has them.
std::set<int> header_dtypes() {
    std::ifstream file(KVJIT_HEADER);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::smatch body;
    REQUIRE(std::regex_search(text, body, std::regex(R"(typedef enum kvjit_dtype \{([^}]*)\})")));
    std::set<int> numbers;
    const std::string rows = body[1];
    const std::regex row(R"(KVJIT_\w+ = (\d+))");
    for (std::sregex_iterator found(rows.begin(), rows.end(), row), end; found != end; ++found) {
        numbers.insert(std::stoi((*found)[1]));
    }
    return numbers;
}

/// Elements of T are what the host has for `dtype`, `per_byte` to the byte.
template <class T>
void check_agrees(kvjit_dtype dtype, int per_byte = 1) {
    const ElementType& type = element_type(dtype);
    CAPTURE(type.name);
    CHECK(kvjit::element_of<T>().bits * per_byte == type.bytes * 8);
    CHECK(static_cast<std::int64_t>(sizeof(T)) == type.bytes);
    CHECK(kvjit::bytes_of<T>(24) == 24 * type.bytes / per_byte);
}

}  // namespace

TEST_CASE("every type of the header has its row, and a number that is none has no bytes") {
    const std::set<int> numbers = header_dtypes();
    CHECK(numbers.size() >= 7);
    for (const int number : numbers) CHECK_MESSAGE(element_type(number).name != "unknown", number);
    CHECK(std::size(kElementTypes) == numbers.size());
    CHECK(dtype_bytes(KVJIT_F32) == 4);
    CHECK(dtype_bytes(KVJIT_F16) == 2);
    CHECK(dtype_bytes(KVJIT_I64) == 8);
    CHECK(element_type(77).name == "unknown");
    CHECK(element_type(77).bytes == 0);
}

TEST_CASE("kernels know the types as the host does") {
    check_agrees<float>(KVJIT_F32);
    check_agrees<kvjit::f16_t>(KVJIT_F16);
    check_agrees<kvjit::bf16_t>(KVJIT_BF16);
    check_agrees<kvjit::i8_t>(KVJIT_I8);
    check_agrees<kvjit::i4x2_t>(KVJIT_U8, 2);
}
