// How often instructions run for a tile.
#include "inspect/sass/tile_loop.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "listing.h"

namespace kvjit::tool::sass {
namespace {

using Named = std::map<std::string, std::int64_t>;

Tile tile(int computed_rows = 16, std::int64_t copied_bytes = 0) {
    Tile made{};
    made.keys = 1;
    made.rows = made.room = 16;
    made.computed_rows = computed_rows;
    made.threads = 32;
    made.row_access = 16;
    made.copied_row_bytes = static_cast<int>(copied_bytes);
    return made;
}

Result<Named> counts_of(const Code& code, Product product, const Tile& of = tile()) {
    const std::vector<Loop> loops = find_loops(code);
    const auto place = find_tile_loop(code, loops, product);
    if (!place) return fail(place.error());
    const auto counted = count_tile(code, loops, *place, product, of);
    if (!counted) return fail(counted.error());
    Named named;
    for (const auto& [instruction, times] : *counted) named[instruction->opcode] += times;
    return named;
}

std::int64_t sum_of(const Named& named) {
    std::int64_t sum = 0;
    for (const auto& [opcode, times] : named) sum += times;
    return sum;
}

/// A loop over tiles around `inside`, a loop from .L_x_2 on.
Code around(const Lines& inside) {
    return code_of(
        joined({{".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]", "HMMA.16816.F32 R16, R12, R20, R16", ".L_x_2:"},
                inside,
                {"@!P0 BRA `(.L_x_2)", "@P1 BRA `(.L_x_1)", "EXIT"}}));
}

TEST_CASE("the way that does the work with the fewest instructions counts") {
    Named named = *counts_of(code_of(kDecode), Product::kTensor);
    CHECK(!named.contains("FMUL"));
    CHECK(!named.contains("LDL"));
    CHECK(named["HMMA"] == 2);
    CHECK(named["LDGSTS"] == 2);
    CHECK(named["BSYNC"] == 1);
    CHECK(sum_of(named) == 17);
}

TEST_CASE("a loop inside counts as often as its counter says") {
    const auto turns = [](const std::string& bound, const std::string& grow, bool compared_first) {
        const std::string compare = "ISETP.GE.AND P0, PT, R7, " + bound + ", PT";
        return counts_of(around({"STS [R8], R9", compared_first ? compare : grow, compared_first ? grow : compare}),
                         Product::kTensor)
            .value()["STS"];
    };
    CHECK(turns("0x400", "VIADD R7, R7, 0x200", false) == 2);
    CHECK(turns("0x401", "VIADD R7, R7, 0x200", false) == 3);
    CHECK(turns("0x380", "IADD3 R7, PT, PT, R7.reuse, 0x80, RZ", true) == 8);
}

TEST_CASE("a counter that isn't understood is no guess") {
    for (const char* grow : {"VIADD R7, R7, R8", "IADD3 R7, R7, 0x80, 0x80", "VIADD R7, R8, 0x80", "SHF.L R7, R7, 0x1",
                             "VIADD R7, R7, -0x80"}) {
        const Code code = around({"STS [R8], R9", grow, "ISETP.GE.AND P0, PT, R7, 0x400, PT"});
        CHECK_MESSAGE(!counts_of(code, Product::kTensor), grow);
    }
    CHECK(!counts_of(around({"STS [R8], R9", "VIADD R7, R7, 0x1", "ISETP.GE.AND P0, PT, R7, 0x10001, PT"}),
                     Product::kTensor));
    // another comparison decides, or the counter changes twice
    CHECK(!counts_of(around({"STS [R8], R9", "VIADD R7, R7, 0x80", "ISETP.GE.AND P0, PT, R7, 0x400, PT",
                             "ISETP.GE.AND P0, PT, R9, R10, PT"}),
                     Product::kTensor));
    CHECK(!counts_of(
        around({"STS [R8], R9", "VIADD R7, R7, 0x80", "VIADD R7, R7, 0x80", "ISETP.GE.AND P0, PT, R7, 0x400, PT"}),
        Product::kTensor));
}

TEST_CASE("a loop that copies counts as often as the tile needs") {
    const Code code =
        around({"LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]", "LDGSTS.E.BYPASS.128 [R7], desc[UR4][R2.64]"});
    // five copies of a lane, two in a turn; one copy before the loop
    CHECK(counts_of(code, Product::kTensor, tile(16, 5 * 16 * 32)).value()["LDGSTS"] == 1 + 6);
}

TEST_CASE("rows that do not exist are left out") {
    Lines rows;  // of a dot product, which stops after the rows that there are
    for (int row = 0; row < 16; ++row) {
        const std::string sum = "R" + std::to_string(row);
        rows.insert(rows.end(), {"FFMA " + sum + ", R20, R21, " + sum, "LDS R22, [R23]", "@P3 BRA `(.L_x_3)"});
    }
    const Code code = code_of(joined({{".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]", ".L_x_2:"},
                                      rows,
                                      {".L_x_3:", "VIADD R40, R40, 0x8", "ISETP.GE.AND P0, PT, R40, 0x40, PT",
                                       "@!P0 BRA `(.L_x_2)", "@P1 BRA `(.L_x_1)", "EXIT"}}));
    for (const auto& [computed, products] : {std::pair{16, 128}, {4, 32}, {1, 8}}) {
        Named named = *counts_of(code, Product::kFloat, tile(computed));
        CHECK(named["FFMA"] == products);
        CHECK(named["LDGSTS"] == 1);
    }
}

TEST_CASE("keys and values on two ways are two turns") {
    const Lines half =
        joined({repeated({"FFMA R1, R2, R3, R1"}, 16), {"VIADD R7, R7, 0x1", "ISETP.GE.AND P0, PT, R7, 0x4, PT"}});
    const Code code = code_of(joined({{".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]", "@P2 BRA `(.L_x_3)", ".L_x_2:"},
                                      half,
                                      {"@!P0 BRA `(.L_x_2)", "BRA `(.L_x_5)", ".L_x_3:", ".L_x_4:"},
                                      half,
                                      {"@!P0 BRA `(.L_x_4)", ".L_x_5:", "@P1 BRA `(.L_x_1)", "EXIT"}}));
    Named named = *counts_of(code, Product::kFloat);
    CHECK(named["FFMA"] == 128);
    CHECK(named["LDGSTS"] == 2);
}

TEST_CASE("turns that no constant tells follow from the tile's products, or its rows") {
    Tile of = tile();
    of.value_products = 64;
    const Lines products = repeated({"FFMA R1, R2, R3, R1"}, 16);
    const Code values = code_of(joined({{".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]", ".L_x_2:"},
                                        products,
                                        {"@!P0 BRA `(.L_x_2)", "@P1 BRA `(.L_x_1)", "EXIT"}}));
    CHECK(counts_of(values, Product::kFloat, of).value()["FFMA"] == 64);
    CHECK(counts_of(around({"MUFU.EX2 R1, R2"}), Product::kTensor).value()["MUFU"] == 16);
}

TEST_CASE("what is not understood is said") {
    const auto no_loop = counts_of(code_of({"HMMA.16816.F32 R16, R12, R20, R16", "EXIT"}), Product::kTensor);
    CHECK(no_loop.error() == "no loop copies rows and multiplies");
    const auto no_turns = counts_of(around({"STS [R8], R9"}), Product::kTensor);
    CHECK(no_turns.error() == "nothing tells the turns of the loop at 0x20");
    const Code straight = code_of(joined({{".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]"},
                                          repeated({"FFMA R1, R2, R3, R1"}, 16),
                                          {"@P1 BRA `(.L_x_1)", "EXIT"}}));
    CHECK(counts_of(straight, Product::kFloat).error() == "the loop over tiles has no loop of products inside");
    const auto three = counts_of(around({"NOP", ".L_x_3:", "STS [R8], R9", "@P4 BRA `(.L_x_3)"}), Product::kTensor);
    CHECK(three.error() == "the loop over tiles has loops of three levels");
}

}  // namespace
}  // namespace kvjit::tool::sass
