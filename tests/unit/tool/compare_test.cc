// What replay says of outputs that differ.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "compare.h"

namespace kvjit::tool {
namespace {

using Numbers = std::vector<std::int64_t>;

std::string region_of(const Numbers& shape, const Numbers& elements, const Label& label) {
    Region region(shape);
    for (const std::int64_t element : elements) region.add(element);
    CHECK(region.count() == static_cast<std::int64_t>(elements.size()));
    return region.text(label);
}

TEST_CASE("a region names each axis' indices") {
    const Numbers shape{3, 4, 5};
    const Label named("out", {"token", "head", "d"}, {});
    CHECK(region_of(shape, {0}, named) == "token 0, head 0, d 0");
    CHECK(region_of(shape, {5, 6, 7, 8, 9, 10}, named) == "token 0, head 1 to 2, every d");
    CHECK(region_of(shape, {0, 3, 59}, named) == "2 of token 0 to 2, 2 of head 0 to 3, 3 of d 0 to 4");
    CHECK(region_of(shape, {5, 6, 7, 8, 9, 10}, Label("out")) == "(0, 1 to 2, *)");
    CHECK(region_of({1, 2}, {0}, Label("out", {"token", "head"}, {})) == "token 0, head 0");
    CHECK(region_of({2, 2}, {0, 1}, Label("out", {"token"}, {})) == "(0, *)");  // axes that don't fit the shape
}

Tensor floats(const Numbers& shape, const std::vector<float>& numbers) {
    Tensor tensor(KVJIT_F32, shape, std::byte{0});
    std::memcpy(tensor.bytes().data(), numbers.data(), tensor.bytes().size());
    return tensor;
}

TEST_CASE("outputs that are off: the worst one, and where all of them are") {
    const Tensor expected = floats({2, 3}, {1, 2, 4, -1, -2, -4});
    CHECK(compare_closely("out", expected, expected, 0).pass);
    const Verdict verdict = compare_closely("out", floats({2, 3}, {1, 2.1f, 4, -1, -2.5f, -4.0001f}), expected, 0.01);
    CHECK(!verdict.pass);
    CHECK(verdict.detail ==
          "out(1, 1) is -2.5, expected -2; off by 0.125 of the largest, 0.01 is allowed; 2 of 6 are "
          "off by more: (*, 1)");
    const float nan = __builtin_nanf("");
    CHECK(compare_closely("out", floats({2, 3}, {nan, 2, 4, -1, -2, -4}), expected, 0.01)
              .detail.ends_with("1 of 6 are off by more: (0, 0)"));
    CHECK(compare_bytes("out", floats({2, 3}, {1, 2, 4, -1, -2, -5}), expected)
              .detail.ends_with("1 of 6 elements differ, none may: (1, 2)"));
    CHECK(compare_closely("out", floats({2}, {0, 1}), floats({2}, {0, 0}), 0.01)
              .detail.ends_with("1 of 2 are off by more: (1)"));  // nothing expected is other than 0
}

}  // namespace
}  // namespace kvjit::tool
