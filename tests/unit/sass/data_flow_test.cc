// What a warp waits for, and what is on its way meanwhile.
#include "inspect/sass/data_flow.h"

#include <doctest/doctest.h>

#include "listing.h"

namespace kvjit::tool::sass {
namespace {

/// Code without branches, each instruction once, and what it waits for.
Loads loads_of(const Lines& lines) {
    const Code code = code_of(lines);
    std::vector<Counted> counted;
    for (const Instruction& each : code.at(0).instructions) counted.push_back({&each, 1});
    return find_loads(counted);
}

std::int64_t flight_of(const Lines& lines) {
    const Code code = code_of(lines);
    std::vector<Counted> counted;
    for (const Instruction& each : code.at(0).instructions) counted.push_back({&each, 1});
    return bytes_in_flight(counted);
}

void check(const Loads& found, int copies, int trips) {
    CHECK(found.copies == copies);
    CHECK(found.trips == trips);
}

TEST_CASE("a load that is stored is a copy, for which a warp waits") {
    check(loads_of({"LDG.E.U16 R4, desc[UR4][R2.64]", "STS.U16 [R5], R4"}), 1, 1);
    check(loads_of({"LDG.E.U16 R4, desc[UR4][R2.64]", "STS.U16 [R5], R6"}), 0, 0);
}

TEST_CASE("a value that the next turn uses is not waited for") {
    check(loads_of({"IMAD.MOV.U32 R8, RZ, RZ, R4", "LDG.E.64 R4, desc[UR4][R2.64]", "STS [R6], R9"}), 0, 0);
}

TEST_CASE("a value is followed through a move and both words") {
    check(loads_of({"LDG.E.64 R4, desc[UR4][R2.64]", "SEL R7, R5, RZ, P0", "STS [R6], R7"}), 1, 1);
    check(loads_of({"LDG.E.64 R4, desc[UR4][R2.64]", "LDG.E R8, desc[UR4][R4.64]"}), 0, 1);
}

TEST_CASE("a value that arithmetic made of a loaded one is another") {
    check(loads_of({"LDG.E R4, desc[UR4][R2.64]", "FADD R7, R4, R4", "STS [R6], R7"}), 0, 1);
}

TEST_CASE("one wait may be for several loads") {
    check(loads_of({"LDG.E R4, desc[UR4][R2.64]", "LDG.E R5, desc[UR4][R2.64+0x4]", "FADD R6, R4, R5",
                    "LDG.E R4, desc[UR4][R2.64]", "FADD R6, R4, R5"}),
          0, 2);
}

TEST_CASE("predicates that are written with a value aren't it") {
    check(loads_of({"LDG.E R4, desc[UR4][R2.64]", "SHFL.BFLY PT, R4, R8, 0x1, 0x1f", "STS [R6], R4"}), 0, 0);
}

TEST_CASE("bytes in flight are those of pending groups, and of the new one") {
    const Lines copies = repeated({"LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]"}, 2);
    CHECK(flight_of(joined({{"DEPBAR.LE SB0, 0x2"}, copies, {"LDGDEPBAR"}})) == 3 * 2 * 512);
    // two groups a turn: between its two waits there is one of them, and the lesser wait counts
    CHECK(flight_of(
              joined({{"DEPBAR.LE SB0, 0x1"}, copies, {"LDGDEPBAR", "DEPBAR.LE SB0, 0x0"}, copies, {"LDGDEPBAR"}})) ==
          1 * 2 * 512);
    CHECK(flight_of(copies) == 0);
    CHECK(flight_of({"DEPBAR.LE SB1, 0x2", "LDGDEPBAR"}) == 0);
}

}  // namespace
}  // namespace kvjit::tool::sass
