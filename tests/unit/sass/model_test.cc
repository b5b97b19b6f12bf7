// The model of time, worked by hand.
#include "inspect/sass/model.h"

#include <doctest/doctest.h>

namespace kvjit::tool::sass {
namespace {

/// 10 bytes a cycle and multiprocessor
constexpr Gpu kGpu = {"made up", "sm_90a", 100, 1e9, 1e12, 100e12, 8, 1};

struct Given {
    std::int64_t instructions = 480, tensor = 32, shared_cycles = 100, flight_bytes = 8192;
    int copies = 0, trips = 0;
    std::int64_t group_products = 0;
};

void check(bool is_decode, const Given& given, double share, const char* bound) {
    Modelled program{.is_decode = is_decode,
                     .warps = 8,
                     .pipes = {},
                     .tile = {.keys = 16,
                              .rows = 4,
                              .shared_cycles = given.shared_cycles,
                              .flight_bytes = given.flight_bytes,
                              .copies = given.copies,
                              .trips = given.trips,
                              .cache_bytes = 8192,
                              .operations = 1 << 20,
                              .group_products = given.group_products,
                              .alone = 0}};
    program.pipes[Pipe::kTensor] = given.tensor;
    program.pipes[Pipe::kInt] = given.instructions - given.tensor;
    const Prediction found = predict(program, kGpu);
    CHECK(found.bound == bound);
    CHECK(found.share == doctest::Approx(share).epsilon(0.0005));
}

TEST_CASE("decode is bound by what takes longest") {
    check(true, {}, 0.9, "memory");                                   // 819.2 / 0.9 cycles
    check(true, {.instructions = 2400}, 0.8192, "issue");             // 2400 / 4 / 0.6 = 1000
    check(true, {.tensor = 300}, 0.8192, "tensor");                   // 300 * 8 / 4 / 0.6
    check(true, {.shared_cycles = 600}, 0.8192, "shared");            // 600 / 0.6
    check(true, {.flight_bytes = 600}, 0.8, "flight");                // 8 warps * 600 bytes in 600 cycles
    check(true, {.copies = 12, .trips = 12}, 819.2 / 1100, "waits");  // 12 * 600 / 8 + 480 / 4 / 0.6
    check(true, {.copies = 8, .trips = 20}, 819.2 / 1100, "waits");   // (8 * 600 + 12 * 200) / 8 + 200
}

TEST_CASE("prefill is a share of the tensor cores") {
    // 2^20 operations take 1048.576 cycles at 1000 a cycle and multiprocessor
    check(false, {.instructions = 600, .tensor = 600}, 1048.576 / 2000, "tensor");
}

TEST_CASE("warpgroups multiply at the published rate") {
    // 100e12 operations a second are 250 a cycle and quarter: 16.384 cycles for a product's 4096
    check(false, {.tensor = 4, .group_products = 256}, 1048.576 / (256 * 16.384 / 4 / 0.6), "tensor");
}

TEST_CASE("without tensor cores it is a share of float32") {
    check(false, {.instructions = 19200, .tensor = 0}, 4096.0 / 8000, "issue");  // 256 operations a cycle
}

TEST_CASE("GPUs are found by the architecture's number") {
    REQUIRE(gpus_of("sm_90").size() == 2);
    CHECK(gpus_of("sm_90a")[1].name == "H200");
    CHECK(gpus_of("sm_100f").at(0).name == "B200");
    CHECK(gpus_of("sm_120").empty());
    CHECK(gpus_of("x86-64").empty());
}

}  // namespace
}  // namespace kvjit::tool::sass
