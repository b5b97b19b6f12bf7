// What instructions occupy.
#include "inspect/sass/pipes.h"

#include <doctest/doctest.h>

#include "listing.h"

namespace kvjit::tool::sass {
namespace {

TEST_CASE("each instruction occupies one pipe") {
    const std::pair<const char*, Pipe> lines[] = {{"HMMA.16816.F32 R0, R4, R8, R0", Pipe::kTensor},
                                                  {"HFMA2 R1, R2, R3, R4", Pipe::kHalf},
                                                  {"FFMA R1, R2, R3, R4", Pipe::kFloat},
                                                  {"IMAD.WIDE.U32 R2, R3, R4, R6", Pipe::kInt},
                                                  {"ULEA UR4, UR5, UR6, 0x18", Pipe::kInt},
                                                  {"MUFU.EX2 R1, R2", Pipe::kConvert},
                                                  {"F2FP.F16.F32.PACK_AB R1, R2, R3", Pipe::kConvert},
                                                  {"LDSM.16.M88.4 R4, [R1]", Pipe::kShared},
                                                  {"SHFL.BFLY PT, R1, R2, 0x1, 0x1f", Pipe::kShared},
                                                  {"STG.E [R2.64], R4", Pipe::kGlobal},
                                                  {"BAR.SYNC.DEFER_BLOCKING 0x0", Pipe::kControl},
                                                  {"@!PT LDS RZ, [RZ]", Pipe::kControl}};
    for (const auto& [line, pipe] : lines) CHECK_MESSAGE(pipe_of(instruction_of(line)) == pipe, line);
}

TEST_CASE("shared memory takes a cycle for 128 bytes") {
    const std::pair<const char*, int> lines[] = {{"LDS.128 R4, [R1]", 4},
                                                 {"LDS.64 R4, [R1]", 2},
                                                 {"STS [R1], R4", 1},
                                                 {"LDS.U16 R4, [R1]", 1},
                                                 {"LDSM.16.MT88.4 R4, [R1]", 4},
                                                 {"LDSM.16.M88.2 R4, [R1]", 2},
                                                 {"LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]", 4},
                                                 {"@!PT LDS RZ, [RZ]", 0},
                                                 {"FADD R1, R2, R3", 0}};
    for (const auto& [line, cycles] : lines) CHECK_MESSAGE(wavefronts(instruction_of(line)) == cycles, line);
}

TEST_CASE("widths, products and spills") {
    CHECK(bytes_of_lane(instruction_of("LDG.E.U8 R4, desc[UR4][R2.64]")) == 1);
    CHECK(bytes_of_lane(instruction_of("LDG.E R4, desc[UR4][R2.64]")) == 4);
    CHECK(copied_bytes(instruction_of("LDGSTS.E.64 [R6], desc[UR4][R2.64]")) == 256);
    CHECK(copied_bytes(instruction_of("LDG.E.64 R4, desc[UR4][R2.64]")) == 0);
    CHECK(product_shape(instruction_of("HMMA.16816.F32.BF16 R0, R4, R8, R0")) == "m16n8k16");
    CHECK(product_shape(instruction_of("IMMA.16832.S8.S8 R0, R4, R8, R0")) == "m16n8k32");
    CHECK(product_shape(instruction_of("HGMMA.64x128x16.F32 R88, gdesc[UR8], RZ, !UPT")) == "m64n128k16");
    CHECK(group_columns(instruction_of("HGMMA.64x64x16.F32.BF16 R24, R176, gdesc[UR4].tnspB, R24")) == 64);
    CHECK(group_columns(instruction_of("HMMA.16816.F32 R0, R4, R8, R0")) == 0);
    CHECK(wavefronts(instruction_of("HGMMA.64x128x16.F32 R88, gdesc[UR8], R88")) == (64 + 128) * 32 / 128 / 4);
    CHECK(wavefronts(instruction_of("HGMMA.64x64x16.F32 R24, R176, gdesc[UR4].tnspB, R24")) == 64 * 32 / 128 / 4);
    CHECK(product_shape(instruction_of("FFMA R1, R2, R3, R4")).empty());
    CHECK(is_product(Product::kFloat, instruction_of("FFMA2 R2, R4, R6, R8")));
    CHECK(!is_product(Product::kFloat, instruction_of("HMMA.16816.F32 R0, R4, R8, R0")));
    CHECK(is_local(instruction_of("STL [R1], R4")));
    CHECK(!is_local(instruction_of("STG.E [R2.64], R4")));
    CHECK(moves_data(instruction_of("STS [R1], R4")));
    CHECK(!moves_data(instruction_of("LDS R4, [R1]")));
}

}  // namespace
}  // namespace kvjit::tool::sass
