// A summary of what can be had, and of what can't.
#include "inspect/summary.h"

#include <doctest/doctest.h>

namespace kvjit::tool {
namespace {

SummarySource source(const std::string& target) {
    return {.program = "decode",
            .variant = "simd",
            .target = target,
            .image = "attend_decode-12345678",
            .origin = "none",
            .revision = 2,
            .block_threads = 0,
            .dynamic_shared_bytes = 0,
            .attention = {},
            .object = fail("no object"),
            .assembly = fail("no compiler"),
            .log = fail("no log"),
            .listing = fail("no nvdisasm")};
}

std::string text_of(const Summary& summary) {
    std::set<std::string> told;
    return summary_text(summary, told);
}

TEST_CASE("without a compiler a summary says what it lacks, and why") {
    const Summary summary = summarise(source("x86_64-unknown-linux-gnu:x86-64-v3+avxvnni+f16c"));
    CHECK(!summary.cpu);
    const std::string text = text_of(summary);
    CHECK_MESSAGE(text.starts_with("decode: simd revision 2 for x86-64-v3 and 2 more features\n"), text);
    CHECK(text.find("lacks      frame, spills, hot loop: no compiler\n") != text.npos);
    CHECK(text.find("lacks      code: no object\n") != text.npos);
    CHECK(summary_json(summary)["code_bytes"].is_null());
    CHECK(summary_json(summary)["lacks"].size() == 2);
}

TEST_CASE("a reason that another program's summary has above is not said again") {
    std::set<std::string> told;
    const Summary summary = summarise(source("x86_64-unknown-linux-gnu:x86-64-v3"));
    CHECK(summary_text(summary, told).contains("lacks      code: no object\n"));
    const std::string again = summary_text(summary, told);
    CHECK_MESSAGE(again.contains("lacks      code, for the reason above\n"), again);
    CHECK(again.contains("lacks      frame, spills, hot loop, for the reason above\n"));
}

TEST_CASE("CUDA's figures are those of ptxas' report and of the launch") {
    SummarySource cuda = source("nvptx64-nvidia-cuda:sm_90a");
    cuda.block_threads = 128;
    cuda.dynamic_shared_bytes = 113680;
    cuda.log =
        "ptxas info    : Compiling entry function 'kvjit_attend_decode' for 'sm_90a'\n"
        "ptxas         .     16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 64 registers, used 1 barriers, 1024 bytes smem\n";
    const Json json = summary_json(summarise(cuda));
    CHECK(json["registers"] == 64);
    CHECK(json["stack_bytes"] == 16);
    CHECK(json["spill_store_bytes"] == 4);
    CHECK(json["spill_load_bytes"] == 8);
    CHECK(json["static_shared_bytes"] == 1024);
    CHECK(json["dynamic_shared_bytes"] == 113680);
    CHECK(json["occupancy"]["blocks"] == 2);
    CHECK(json["occupancy"]["limit"] == "shared memory");
    cuda.log = "warning: nothing\n";
    CHECK(text_of(summarise(cuda)).find("the log has no report of ptxas") != std::string::npos);
}

/// A loop over tiles: one product, a copy of 16 bytes a lane, and a counter.
constexpr const char* kListing =
    "\t.section\t.text.kvjit_attend_decode,\"ax\",@progbits\n"
    ".L_x_1:\n"
    "        /*0000*/    DEPBAR.LE SB0, 0x1 ;\n"
    "        /*0010*/    LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64] ;\n"
    "        /*0020*/    LDGDEPBAR ;\n"
    "        /*0030*/    HMMA.16816.F32 R16, R12, R20, R16 ;\n"
    "        /*0040*/    @!P2 BRA `(.L_x_1) ;\n"
    "        /*0050*/    EXIT ;\n";

SummarySource decode_source(const std::string& architecture) {
    SummarySource cuda = source("nvptx64-nvidia-cuda:" + architecture);
    cuda.block_threads = 128;
    cuda.attention = sass::Attention{true, sass::Multiplier::kWarps, 4, {128, 16, 0, 128}, 227 * 1024};
    cuda.log =
        "ptxas info    : Compiling entry function 'kvjit_attend_decode' for 'sm_90a'\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 183 registers, used 1 barriers\n";
    cuda.listing = kListing;
    return cuda;
}

TEST_CASE("attention's shares are predicted on the GPUs of its architecture") {
    const Summary summary = summarise(decode_source("sm_90a"));
    const Json json = summary_json(summary);
    CHECK(json["hot_loop"]["instructions"] == 5);
    CHECK(json["hot_loop"]["tile"]["flight_bytes"] == 2 * 512);
    REQUIRE(json["predicted"].size() == 2);
    CHECK(json["predicted"][0]["gpu"] == "H100");
    // 8 warps with 1024 bytes each on their way for 600 ns, of what the memory gives to one of 132 multiprocessors
    CHECK(json["predicted"][0]["share"].get<double>() == doctest::Approx(8 * 1024 / 600e-9 * 132 / 3.35e12));
    CHECK(json["predicted"][0]["bound"] == "flight");
    const std::string text = text_of(summary);
    CHECK_MESSAGE(text.contains("\n  predicted  H100 0.54 of the memory's bandwidth, bound by flight; H200 0.38 "),
                  text);
    CHECK(text.contains("not measured"));
}

TEST_CASE("what can't be predicted is said") {
    const Summary unknown = summarise(decode_source("sm_120"));
    CHECK(unknown.lacks.back() == "predicted shares: no GPU of sm_120 is in the model");
    CHECK(summary_json(unknown)["hot_loop"]["instructions"] == 5);
    SummarySource other = decode_source("sm_90a");
    other.listing = "\t.section\t.text.kvjit_attend_decode,\"ax\",@progbits\n        /*0000*/    EXIT ;\n";
    CHECK(summarise(other).lacks.back() == "hot loop: no loop copies rows and multiplies");
    SummarySource unreported = decode_source("sm_90a");
    unreported.log = fail("no log");
    CHECK(!summary_json(summarise(unreported)).contains("predicted"));
    CHECK(summarise(unreported).lacks.back() == "predicted shares: they take the occupancy");
}

}  // namespace
}  // namespace kvjit::tool
