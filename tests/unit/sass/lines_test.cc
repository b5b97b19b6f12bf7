// Which lines of the templates instructions are from.
#include "inspect/sass/lines.h"

#include <doctest/doctest.h>

#include "listing.h"

namespace kvjit::tool::sass {
namespace {

constexpr const char* kText =
    R"(	//## File "/home/me/templates/cuda/machine/ptx.h", line 111 inlined at "/home/me/templates/cuda/ring.h", line 68
	//## File "/home/me/templates/cuda/ring.h", line 68 inlined at "/home/me/templates/cuda/decode.cu", line 112
	//## File "/home/me/templates/cuda/decode.cu", line 112
        /*0000*/                   LDGSTS.E [R6], desc[UR4][R2.64] ;
        /*0010*/                   VIADD R1, R1, 0x1 ;
	//## File "templates/cuda/decode.cu", line 113
        /*0020*/                   VIADD R2, R2, 0x1 ;
	//## File "/home/me/templates/cuda/machine/ptx.h", line 17
        /*0030*/                   NOP ;
	//## File "/home/me/templates/cuda/work.h", line 7 inlined at "/home/me/templates/cuda/decode.cu", line 114
	//## File "/home/me/templates/cuda/decode.cu", line 114
        /*0050*/                   NOP ;
	//## File "/usr/include/other.h", line 5
        /*0060*/                   NOP ;
)";

TEST_CASE("an instruction is of the innermost line but a primitive's") {
    const std::map<std::int64_t, std::string> expected = {{0, "cuda/ring.h:68"},      {16, "cuda/ring.h:68"},
                                                          {32, "cuda/decode.cu:113"}, {48, "cuda/machine/ptx.h:17"},
                                                          {80, "cuda/work.h:7"},      {96, "no line"}};
    CHECK(lines_of(kText) == expected);
    CHECK(lines_of(listing_of({"NOP", "EXIT"})).empty());
}

TEST_CASE("lines with most instructions come first, and of each its opcodes with most") {
    const Code code = code_of({"LDGSTS.E [R6], desc[UR4][R2.64]", "VIADD R1, R1, 0x1", "LDG.E R4, desc[UR4][R2.64]"});
    const std::vector<Instruction>& instructions = code.at(0).instructions;
    const std::vector<Counted> counted = {{&instructions[0], 2}, {&instructions[1], 5}, {&instructions[2], 4}};
    const auto counts = count_lines(counted, {{0, "a.h:1"}, {16, "b.h:2"}, {32, "b.h:2"}});
    REQUIRE(counts.size() == 2);
    CHECK(counts[0].line == "b.h:2");
    CHECK(counts[0].instructions == 9);
    CHECK(counts[0].opcodes == std::vector<std::pair<std::string, std::int64_t>>{{"VIADD", 5}, {"LDG", 4}});
    CHECK(counts[1].line == "a.h:1");
    CHECK(counts[1].instructions == 2);
    CHECK(count_lines(counted, {}).empty());
}

}  // namespace
}  // namespace kvjit::tool::sass
