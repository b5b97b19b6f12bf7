// Loops of a kernel, found by the branches back.
#include "inspect/sass/loops.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "listing.h"

namespace kvjit::tool::sass {
namespace {

using Blocks = std::set<int>;

TEST_CASE("a loop inside another one lies in it") {
    //                      0       1          2          3       4                       5                       6
    const Code code = code_of({"NOP", ".L_x_1:", "NOP", ".L_x_2:", "@P0 BRA `(.L_x_2)", "@P1 BRA `(.L_x_1)", "EXIT"});
    const std::vector<Loop> loops = find_loops(code);
    REQUIRE(loops.size() == 2);
    const auto inner = std::ranges::find(loops, Blocks{2}, &Loop::blocks);
    const auto outer = std::ranges::find(loops, Blocks{1, 2, 3}, &Loop::blocks);
    REQUIRE(inner != loops.end());
    REQUIRE(outer != loops.end());
    CHECK(inner->head == 2);
    CHECK(outer->head == 1);
    CHECK(inner->around == outer - loops.begin());
    CHECK(outer->around == -1);
    CHECK(count(code, *outer, [](const Instruction& each) { return each.opcode == "BRA"; }) == 2);
}

TEST_CASE("branches back to the same block make one loop") {
    const Code code = code_of({".L_x_1:", "@P0 BRA `(.L_x_1)", "NOP", "@P1 BRA `(.L_x_1)", "EXIT"});
    const std::vector<Loop> loops = find_loops(code);
    REQUIRE(loops.size() == 1);
    CHECK(loops[0].blocks == Blocks{0, 1});
}

TEST_CASE("what a way from outside enters in its middle is no loop") {
    const Code code = code_of({"@P0 BRA `(.L_x_2)", ".L_x_1:", "NOP", ".L_x_2:", "@P1 BRA `(.L_x_1)", "EXIT"});
    CHECK(find_loops(code).empty());
}

TEST_CASE("blocks that nothing reaches are no part of a loop") {
    const Code code = code_of({"BRA `(.L_x_1)", "NOP", ".L_x_1:", "@P0 BRA `(.L_x_1)", "EXIT"});
    const std::vector<Loop> loops = find_loops(code);
    REQUIRE(loops.size() == 1);
    CHECK(loops[0].blocks == Blocks{2});
    CHECK(find_loops({}).empty());
    CHECK(find_loops(code_of({"NOP", "EXIT"})).empty());
}

}  // namespace
}  // namespace kvjit::tool::sass
