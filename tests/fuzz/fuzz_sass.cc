// Any text as nvdisasm's listing of a program: what is counted of it holds together, or an error says why there is no
// hot loop.
#include <numeric>

#include "fuzz_target.h"
#include "inspect/sass/analysis.h"

namespace {

using kvjit::test::require;
using namespace kvjit::tool::sass;

constexpr int kSharedBytes = 227 * 1024;
constexpr kvjit::CacheFormat kFloat16 = {128, 16, 0, 128}, kInt8 = {128, 8, 2, 8};
constexpr Attention kAttentions[] = {{true, Multiplier::kWarps, 4, kInt8, kSharedBytes},
                                     {false, Multiplier::kWarps, 4, kFloat16, kSharedBytes},
                                     {false, Multiplier::kWarpgroups, 4, kFloat16, kSharedBytes},
                                     {true, Multiplier::kLanes, 1, kFloat16, kSharedBytes},
                                     {false, Multiplier::kLanes, 4, kInt8, kSharedBytes}};

void check_loop(const HotLoop& loop, bool attends) {
    require(loop.tile.has_value() == attends, "attention has a tile, nothing else has");
    require(loop.code.pipes.all() > 0, "a loop has instructions");
    for (const std::int64_t count : loop.code.pipes.of) require(count >= 0, "counts are no less than zero");
    if (loop.tile) require(loop.tile->keys > 0 && loop.tile->flight_bytes >= 0, "a tile has keys");
    const auto sum =
        std::accumulate(loop.lines.begin(), loop.lines.end(), std::int64_t{0},
                        [](std::int64_t so_far, const LineCount& line) { return so_far + line.instructions; });
    require(loop.lines.empty() || sum == loop.code.pipes.all(), "lines have all of the loop's instructions");
}

void check(const Analysis& found, bool attends) {
    require(found.hot.has_value() || !found.hot.error().empty(), "where there is no hot loop, there is a reason");
    if (found.hot) check_loop(*found.hot, attends);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = kvjit::test::as_text(data, size);
    check(analyse(text, std::nullopt), false);
    for (const Attention& attention : kAttentions) check(analyse(text, attention), true);
    return 0;
}

std::string kvjit::test::good_input(std::uint64_t number) {
    const std::string loops[] = {
        ".L_x_2:\n /*0060*/ STS [R8], R9 ;\n /*0070*/ VIADD R7, R7, 0x200 ;\n"
        " /*0080*/ ISETP.GE.AND P0, PT, R7, 0x400, PT ;\n /*0090*/ @!P0 BRA `(.L_x_2) ;\n",
        " /*0060*/ BSSY B0, `(.L_x_3) ;\n /*0070*/ @P1 BRA `(.L_x_2) ;\n"
        " /*0080*/ FMUL R16, R16, R7 ;\n.L_x_2:\n /*0090*/ BSYNC B0 ;\n.L_x_3:\n",
        ".L_x_2:\n /*0060*/ LDGSTS.E.64 [R8], desc[UR4][R2.64] ;\n"
        " /*0070*/ @!P0 BRA `(.L_x_2) ;\n"};
    std::string text = "\t.section\t.text.kvjit_attend_decode,\"ax\",@progbits\n.L_x_1:\n";
    if (number % 2 == 1) text += "\t//## File \"templates/cuda/decode.cu\", line 40\n";
    text +=
        " /*0000*/ DEPBAR.LE SB0, 0x1 ;\n /*0010*/ LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64] ;\n"
        " /*0020*/ LDGDEPBAR ;\n /*0030*/ LDG.E R4, desc[UR4][R2.64] ;\n /*0040*/ STS [R5], R4 ;\n";
    for (int row = 0; row < 16; ++row) text += " /*0050*/ FFMA R1, R2, R3, R1 ;\n";
    text += " /*0050*/ HMMA.16816.F32 R16, R12, R20, R16 ;\n" + loops[number / 2 % std::size(loops)];
    return text + " /*00a0*/ @!P2 BRA `(.L_x_1) ;\n /*00b0*/ EXIT ;\n";
}
