// Instructions, and the blocks that they make.
#include "inspect/sass/code.h"

#include <doctest/doctest.h>

#include "listing.h"

namespace kvjit::tool::sass {
namespace {

using Numbers = std::vector<int>;

TEST_CASE("an instruction has a guard, an opcode, modifiers and operands") {
    const Instruction read = instruction_of("@!P3 LDG.E.64 R140, desc[UR6][R142.64]");
    CHECK(read.guard == "@!P3");
    CHECK(read.opcode == "LDG");
    CHECK(read.modifiers == std::vector<std::string>{"E", "64"});
    CHECK(read.operands == std::vector<std::string>{"R140", "desc[UR6][R142.64]"});
    CHECK(read.has("64"));
    CHECK(!read.has("6"));
    CHECK(!read.is_idle());
    CHECK(instruction_of("@!PT LDS RZ, [RZ]").is_idle());
    CHECK(code_of({"NOP", "LDGDEPBAR"}).at(0).instructions.at(1).address == 16);
}

TEST_CASE("only the entry's section counts") {
    const std::string entry = listing_of({"EXIT"});
    const std::string other = "\t.section\t.text.helper,\"ax\",@progbits\n        /*0000*/      NOP ;\n";
    CHECK(read_code(other + entry + other).size() == 1);
    CHECK(read_code(entry).at(0).instructions.size() == 1);
    CHECK(read_code(other).empty());
    CHECK(read_code("").empty());
    CHECK(read_code("\t.section\t.text.kvjit_x\n  /*00zz*/ NOP ;\n /*0010*/ NOP\n/*").empty());
}

TEST_CASE("a branch under a predicate may go on") {
    const Code code = code_of({"@P0 BRA `(.L_x_1)", "MOV R1, R2", ".L_x_1:", "EXIT"});
    REQUIRE(code.size() == 3);
    CHECK(code[0].followers == Numbers{1, 2});
    CHECK(code[1].followers == Numbers{2});
    CHECK(code[2].followers.empty());
}

TEST_CASE("uniform and divergent branches may go on, others do not") {
    const auto followers = [](const std::string& branch) {
        return code_of({branch, "MOV R1, R2", ".L_x_1:", "EXIT"}).at(0).followers;
    };
    CHECK(followers("BRA.U UP0, `(.L_x_1)") == Numbers{1, 2});
    CHECK(followers("BRA.DIV UR4, `(.L_x_1)") == Numbers{1, 2});
    CHECK(followers("@!P0 BRA P1, `(.L_x_1)") == Numbers{1, 2});
    CHECK(followers("BRA `(.L_x_1)") == Numbers{2});
}

TEST_CASE("a switch goes to all of its labels") {
    const Code code =
        code_of({"BRX R34 -0x1db0 (*\"BRANCH_TARGETS .L_x_1,.L_x_2\"*)", ".L_x_1:", "EXIT", ".L_x_2:", "EXIT"});
    CHECK(code.at(0).followers == Numbers{1, 2});
}

TEST_CASE("threads meet where BSSY says") {
    const Code code =
        code_of({"BSSY B1, `(.L_x_2)", "@P0 BRA `(.L_x_1)", "BSYNC B1", ".L_x_1:", "MOV R1, R2", ".L_x_2:", "EXIT"});
    CHECK(code.at(1).followers == Numbers{3});
}

TEST_CASE("a call of a label is a branch, one of a function returns") {
    const Code code =
        code_of({"@P0 CALL.REL.NOINC `(.L_x_1)", "CALL.REL.NOINC `($__internal_2)", "MOV R1, R2", ".L_x_1:", "EXIT"});
    CHECK(code.at(0).followers == Numbers{1, 2});
    CHECK(code.at(1).followers == Numbers{2});
}

TEST_CASE("a branch to a label that the listing lacks goes nowhere") {
    CHECK(code_of({"BRA `(.L_x_7)", "EXIT"}).at(0).followers.empty());
}

TEST_CASE("operands in parts") {
    CHECK(words_of("[R2.64+UR4]") == std::vector<std::string_view>{"R2", "64", "UR4"});
    CHECK(words_of("").empty());
    CHECK(begins_with_word("R7.reuse", "R7"));
    CHECK(!begins_with_word("R70", "R7"));
    CHECK(constant_of("0x80") == 128);
    CHECK(constant_of("-0x80") == -128);
    for (const char* other : {"R7", "0x", "0x8g", "80", "-", "", "0x100000000"})
        CHECK_MESSAGE(!constant_of(other), other);
    CHECK(address_text(416) == "0x1a0");
}

}  // namespace
}  // namespace kvjit::tool::sass
