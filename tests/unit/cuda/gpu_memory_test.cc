// A GpuDevice's memory and streams.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "support.h"

using namespace kvjit;
using test::contains;
using test::FakeMachine;

namespace {

void* const kStream = reinterpret_cast<void*>(0x2000);
void* const kOwnContext = reinterpret_cast<void*>(0x5000);
using Bytes = std::array<unsigned char, 1000>;

Bytes counting() {
    Bytes bytes;
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
    return bytes;
}

/// Allocates, copies there and back, zeroes half, releases.
gen::Result<void> round_trip(rt::Device& device, Bytes& back) {
    const Bytes bytes = counting();
    const gen::Result<void*> memory = device.allocate(sizeof bytes);
    if (!memory) return std::unexpected(memory.error());
    gen::Result<void> done = device.upload(*memory, bytes.data(), sizeof bytes, rt::kAtOnce);
    if (done) done = device.zero(*memory, sizeof bytes / 2, rt::kAtOnce);
    if (done) done = device.download(back.data(), *memory, sizeof bytes, kStream);
    // A call that fails there leaves memory behind, as it would in a broken context.
    const int fail_at = std::exchange(test::fake_cuda()->fail_at, 0);
    device.release(*memory);
    test::fake_cuda()->fail_at = fail_at;
    return done;
}

}  // namespace

TEST_CASE("what is copied there comes back, zeroed where it was zeroed") {
    FakeMachine machine;
    const auto device = machine.device();
    Bytes back{};
    const auto done = round_trip(*device, back);
    REQUIRE_MESSAGE(done.has_value(), done.error().message);
    Bytes expected = counting();
    std::fill_n(expected.begin(), expected.size() / 2, 0);
    CHECK(back == expected);
}

TEST_CASE("memory is aligned, and a missing amount named") {
    FakeMachine machine;
    const auto device = machine.device();
    const auto memory = device->allocate(1);
    REQUIRE(memory.has_value());
    CHECK(reinterpret_cast<std::size_t>(*memory) % 256 == 0);
    device->release(*memory);
    machine.state().fail_code = rt::cuda::kOutOfMemory;
    machine.state().fail_at = 3;  // after asking for the context and making it current
    const auto missing = device->allocate(123456);
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().status == KVJIT_OUT_OF_MEMORY);
    CHECK(contains(missing.error().message, "allocating 123456 bytes on the GPU Fake GPU 0"));
}

TEST_CASE("transfers share one stream in the primary context, made or found current") {
    for (const bool found : {false, true}) {
        FakeMachine machine;
        const auto device = machine.device();
        if (found) test::fake_cuda_make_current(0, nullptr);
        Bytes back{};
        REQUIRE(round_trip(*device, back).has_value());
        REQUIRE(round_trip(*device, back).has_value());
        CHECK(machine.count("cuStreamCreate") == 1);
        CHECK(machine.count("cuDevicePrimaryCtxRetain") == 1);
    }
}

TEST_CASE("in a context of the caller's no stream outlives its transfer, and no other context is made") {
    FakeMachine machine;
    const auto device = machine.device();
    test::fake_cuda_make_current(0, kOwnContext);
    Bytes back{};
    REQUIRE(round_trip(*device, back).has_value());
    CHECK(machine.count("cuStreamCreate") == 2);
    CHECK(machine.state().streams.empty());
    CHECK(machine.count("cuDevicePrimaryCtxRetain") == 0);
}

TEST_CASE("while a stream is captured, memory can be had, filled and released") {
    FakeMachine machine;
    const auto device = machine.device();
    test::fake_cuda_make_current(0, nullptr);
    machine.state().capturing = reinterpret_cast<void*>(0x2100);
    Bytes back{};
    const auto done = round_trip(*device, back);
    CHECK_MESSAGE(done.has_value(), done.error().message);
}

TEST_CASE("waiting for a captured stream is refused, and the capture goes on") {
    FakeMachine machine;
    const auto device = machine.device();
    machine.state().capturing = kStream;
    Bytes bytes{};
    for (void* stream : {kStream, static_cast<void*>(nullptr)}) {
        for (const auto& done : {device->synchronize(stream), device->download(&bytes, &bytes, 1, stream)}) {
            REQUIRE_FALSE(done.has_value());
            CHECK(done.error().status == KVJIT_CUDA_ERROR);
            CHECK(contains(done.error().message, "captured into a graph"));
        }
    }
    CHECK(machine.count("cuStreamSynchronize") == 0);
}

TEST_CASE("synchronising says what went wrong on the stream") {
    FakeMachine machine;
    const auto device = machine.device();
    CHECK(device->synchronize(kStream).has_value());
    machine.state().fail_code = rt::cuda::kIllegalAddress;
    machine.state().fail_at = 4;  // after context, push and whether it is captured
    const auto done = device->synchronize(kStream);
    REQUIRE_FALSE(done.has_value());
    CHECK(machine.state().calls.end()[-2] == "cuStreamSynchronize");
    CHECK(contains(done.error().message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE(
    "what is written after a stream's work is done in its order, of what the source held then, and not waited for") {
    FakeMachine machine;
    const auto device = machine.device();
    Bytes memory = counting(), bytes = counting();
    machine.state().busy[kStream] = {[&] { memory.fill(1); }};
    REQUIRE(device->zero(memory.data(), sizeof memory, kStream).has_value());
    REQUIRE(device->upload(memory.data(), bytes.data(), sizeof bytes / 2, kStream).has_value());
    bytes.fill(2);
    CHECK(memory == counting());
    REQUIRE(device->synchronize(kStream).has_value());
    Bytes expected = counting();
    std::fill_n(expected.begin() + expected.size() / 2, expected.size() / 2, 0);
    CHECK(memory == expected);
    CHECK(machine.count("cuStreamCreate") == 0);
}

TEST_CASE("what is written after a captured stream's work is done at once and goes into no graph") {
    FakeMachine machine;
    const auto device = machine.device();
    machine.state().capturing = kStream;
    Bytes memory{};
    const Bytes bytes = counting();
    REQUIRE(device->upload(memory.data(), bytes.data(), sizeof bytes, kStream).has_value());
    CHECK(memory == bytes);
    REQUIRE(device->zero(memory.data(), sizeof memory, kStream).has_value());
    CHECK(memory == Bytes{});
}

TEST_CASE("whatever call fails, nothing stays behind") {
    const int calls = test::fail_everywhere([](FakeMachine& machine) -> gen::Result<void> {
        const auto gpu = rt::find_gpu(machine.driver(), 0);
        if (!gpu) return std::unexpected(gpu.error());
        Bytes back{};
        const auto device = rt::make_gpu_device(machine.driver(), *gpu);
        if (auto zeroed = device->zero(back.data(), sizeof back, kStream); !zeroed) return zeroed;
        return round_trip(*device, back);
    });
    CHECK(calls > 20);
}
