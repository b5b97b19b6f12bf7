// Opening the driver, and what its errors say.
#include <vector>

#include "support.h"

using namespace kvjit;
using test::contains;
using test::FakeMachine;

namespace {

gen::Error refusal(const std::vector<std::string>& candidates) {
    const auto driver = rt::Driver::open(candidates);
    REQUIRE_FALSE(driver.has_value());
    CHECK(driver.error().status == KVJIT_CUDA_ERROR);
    return driver.error();
}

std::string message(rt::cuda::Code code) {
    const FakeMachine machine;
    return machine.driver().error(code, "doing so").message;
}

}  // namespace

TEST_CASE("a machine without a driver is told where it was looked for and what to install") {
    const gen::Error error = refusal({"libkvjit_none.so.1", "/nowhere/libcuda.so.1"});
    CHECK(contains(error.message, "libkvjit_none.so.1"));
    CHECK(contains(error.message, "/nowhere/libcuda.so.1"));
    CHECK(contains(error.message, "apt install nvidia-driver"));
}

TEST_CASE("the first candidate that opens is taken") {
    const std::string candidates[] = {"/nowhere/libcuda.so.1", KVJIT_TEST_FAKE_CUDA, KVJIT_TEST_CUDA_11};
    const auto driver = rt::Driver::open(candidates);
    REQUIRE_MESSAGE(driver.has_value(), driver.error().message);
    CHECK(driver->version() == 13000);
}

TEST_CASE("a driver older than CUDA 12 is refused by its version, not by a symbol") {
    const gen::Error error = refusal({KVJIT_TEST_CUDA_11});
    CHECK(contains(error.message, "supports CUDA 11.8"));
    CHECK(contains(error.message, "CUDA 12.0 or newer"));
    CHECK(error.value == 11080);
    CHECK(error.limit == 12000);
}

TEST_CASE("a driver that lacks functions, and a file that is none, are refused") {
    const gen::Error error = refusal({KVJIT_TEST_CUDA_122});
    CHECK(contains(error.message, KVJIT_TEST_CUDA_122));
    CHECK(contains(error.message, "has no function cuInit"));
    CHECK(contains(refusal({"/etc/passwd"}).message, "/etc/passwd"));
}

TEST_CASE("libcuda.so.1 is looked for where the linker looks, once a process") {
    const auto& driver = rt::shared_driver();
    REQUIRE_MESSAGE(driver.has_value(), driver.error().message);
    CHECK(driver->version() == 13000);
    CHECK(&driver == &rt::shared_driver());
}

TEST_CASE("a function may be missing where nobody needs it") {
    constexpr rt::LibraryText kText = {KVJIT_CUDA_ERROR, "", "", ""};
    const std::string path = KVJIT_TEST_CUDA_122;
    const auto library = rt::DynamicLibrary::open(kText, {&path, 1});
    REQUIRE(library.has_value());
    rt::cuda::DriverApi api{};
    using Api = rt::cuda::DriverApi;
    const rt::Symbol<Api> table[] = {rt::symbol<&Api::driver_get_version>("cuDriverGetVersion"),
                                     rt::symbol<&Api::function_load>("cuFuncLoad", false)};
    CHECK(library->fill<Api>(api, table).has_value());
    CHECK(static_cast<bool>(api.driver_get_version));
    CHECK_FALSE(static_cast<bool>(api.function_load));
}

TEST_CASE("an error has CUDA's name, number and sentence, and the driver's version") {
    const std::string text = message(rt::cuda::kNoDevice);
    CHECK(contains(text, "doing so failed: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"));
    CHECK(contains(text, "driver for CUDA 13.0"));
}

TEST_CASE("an error says what to do") {
    CHECK(contains(message(rt::cuda::kNoDevice), "CUDA_VISIBLE_DEVICES"));
    CHECK(contains(message(rt::cuda::kStubLibrary), "LD_LIBRARY_PATH"));
    CHECK(contains(message(rt::cuda::kNoBinaryForGpu), "update the driver"));
    CHECK(contains(message(rt::cuda::kUnsupportedPtxVersion), "KVJIT_NVRTC"));
    CHECK(contains(message(rt::cuda::kIllegalAddress), "compute-sanitizer"));
    CHECK(contains(message(rt::cuda::kLaunchFailed), "compute-sanitizer"));
    CHECK(contains(message(rt::cuda::kSystemDriverMismatch), "reinstall the driver"));
    CHECK(contains(message(rt::cuda::kStreamCaptureUnsupported), "captured into a graph"));
}

TEST_CASE("an error that the driver doesn't know still has its number") {
    CHECK(contains(message(rt::cuda::Code{4321}), "(4321)"));
}

TEST_CASE("memory that isn't there is out of memory, all else a CUDA error") {
    const FakeMachine machine;
    CHECK(machine.driver().error(rt::cuda::kOutOfMemory, "x").status == KVJIT_OUT_OF_MEMORY);
    CHECK(machine.driver().error(rt::cuda::kNoDevice, "x").status == KVJIT_CUDA_ERROR);
}

TEST_CASE(
    "a part of a driver that NVRTC would crash on is named; a driver, none, and a part that it passes over aren't") {
    for (const char* name : {KVJIT_TEST_FAKE_CUDA, "libkvjit_none.so.1", KVJIT_TEST_CUDA_122}) {
        CHECK(rt::check_driver_for_nvrtc(name).has_value());
    }
    const auto refused = rt::check_driver_for_nvrtc(KVJIT_TEST_CUDA_PART);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().status == KVJIT_CUDA_ERROR);
    CHECK(contains(refused.error().message, KVJIT_TEST_CUDA_PART));
    CHECK(contains(refused.error().message, "no cuGetExportTable"));
    CHECK(contains(refused.error().message, "LD_LIBRARY_PATH"));
}
