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
            .object = fail("no object"),
            .assembly = fail("no compiler"),
            .log = fail("no log")};
}

TEST_CASE("without a compiler a summary says what it lacks, and why") {
    const Summary summary = summarise(source("x86_64-unknown-linux-gnu:x86-64-v3+avxvnni+f16c"));
    CHECK(!summary.cpu);
    const std::string text = summary_text(summary);
    CHECK_MESSAGE(text.starts_with("decode: simd revision 2 for x86-64-v3 and 2 more features\n"), text);
    CHECK(text.find("lacks      frame, spills, hot loop: no compiler\n") != text.npos);
    CHECK(text.find("lacks      code: no object\n") != text.npos);
    CHECK(summary_json(summary)["code_bytes"].is_null());
    CHECK(summary_json(summary)["lacks"].size() == 2);
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
    CHECK(summary_text(summarise(cuda)).find("the log has no report of ptxas") != std::string::npos);
}

}  // namespace
}  // namespace kvjit::tool
