// What a GpuDevice asks of the driver.
#include <cstring>
#include <thread>
#include <vector>

#include "cuda/cubin_loader.h"
#include "support.h"

using namespace kvjit;
using test::contains;
using test::FakeMachine;

namespace {

void* const kStream = reinterpret_cast<void*>(0x2000);  // the caller's own
void* const kOwnContext = reinterpret_cast<void*>(0x5000);
void* const kCapturedStream = reinterpret_cast<void*>(0x2100);
constexpr char kArguments[] = "sixteen bytes..";
constexpr unsigned kLarge = 100 * 1024;

rt::ImagePtr load(FakeMachine& machine) {
    machine.state().argument_bytes = sizeof kArguments;
    const auto image = rt::load_cubin(machine.driver(), test::fake_cubin(), "kvjit_store", "store");
    REQUIRE_MESSAGE(image.has_value(), image.error().message);
    return *image;
}

gen::Result<void> launch(rt::Device& device, const rt::ImagePtr& image, const rt::Grid& grid = {3, 2, 128, 1024}) {
    return device.launch(image->entry(), grid, kArguments, sizeof kArguments, kStream);
}

/// From finding the GPU to waiting for a kernel, and the end of all of it.
gen::Result<void> whole_life(FakeMachine& machine) {
    const auto gpu = rt::find_gpu(machine.driver(), 0);
    if (!gpu) return std::unexpected(gpu.error());
    const auto device = rt::make_gpu_device(machine.driver(), *gpu);
    const auto image = rt::load_cubin(machine.driver(), test::fake_cubin(), "kvjit_store", "store");
    if (!image) return std::unexpected(image.error());
    if (auto prepared = device->prepare_kernel((*image)->entry(), kLarge); !prepared) return prepared;
    if (auto launched = launch(*device, *image); !launched) return launched;
    return device->synchronize(kStream);
}

}  // namespace

TEST_CASE("a launch hands on kernel, grid, arguments and stream") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    REQUIRE(launch(*device, image).has_value());
    REQUIRE(machine.state().launches.size() == 1);
    const test::FakeLaunch& seen = machine.state().launches[0];
    CHECK(seen.kernel == image->entry());
    CHECK(seen.grid == std::vector<unsigned>{3, 2, 1, 128, 1, 1});
    CHECK(seen.shared_bytes == 1024);
    CHECK(seen.stream == kStream);
    CHECK(seen.arguments == std::string(kArguments, sizeof kArguments));
}

TEST_CASE("an empty grid is no launch") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    CHECK(launch(*device, image, {0, 2, 128, 0}).has_value());
    CHECK(launch(*device, image, {3, 0, 128, 0}).has_value());
    CHECK(machine.count("cuLaunchKernel") == 0);
}

TEST_CASE("a launch that fails says on what grid") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    const auto done = launch(*device, image, {3, 2, 128, kLarge});  // not prepared for
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().status == KVJIT_CUDA_ERROR);
    CHECK(contains(done.error().message, "3 x 2 blocks of 128 threads and 102400 bytes"));
    CHECK(contains(done.error().message, "CUDA_ERROR_INVALID_VALUE"));
}

TEST_CASE("the caller's context serves, if it is of this GPU") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    test::fake_cuda_make_current(0, kOwnContext);
    REQUIRE(launch(*device, image).has_value());
    CHECK(machine.state().launches[0].context == kOwnContext);
    CHECK(machine.count("cuDevicePrimaryCtxRetain") == 0);
    CHECK(machine.count("cuCtxPushCurrent") == 0);
}

TEST_CASE("without a context, or with another GPU's, the primary one serves; then all is as before") {
    for (const bool other : {false, true}) {
        FakeMachine machine;
        const rt::ImagePtr image = load(machine);
        const auto device = machine.device(1);
        void* before = other ? test::fake_cuda_make_current(0, nullptr) : nullptr;
        REQUIRE(launch(*device, image).has_value());
        REQUIRE(launch(*device, image).has_value());
        CHECK(machine.state().launches[1].context != before);
        CHECK(machine.state().retained[1] == 1);
        CHECK(test::fake_cuda_current() == before);
    }
}

TEST_CASE("eight threads take the primary context once") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] { (void)launch(*device, image); });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(machine.state().launches.size() == 8);
    CHECK(machine.count("cuDevicePrimaryCtxRetain") == 1);
}

TEST_CASE("a prepared kernel may have its shared memory, and never less than another plan asked for") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    CHECK(device->prepare_kernel(image->entry(), 48 * 1024).has_value());
    CHECK(machine.count("cuKernelSetAttribute") == 0);
    CHECK(device->prepare_kernel(image->entry(), kLarge).has_value());
    CHECK(device->prepare_kernel(image->entry(), kLarge - 1024).has_value());
    CHECK(launch(*device, image, {1, 1, 128, kLarge}).has_value());
    CHECK(machine.count("cuKernelSetAttribute") == 1);
}

TEST_CASE("shared memory is asked for on each GPU") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto first = machine.device(0), second = machine.device(1);
    CHECK(first->prepare_kernel(image->entry(), kLarge).has_value());
    CHECK_FALSE(launch(*second, image, {1, 1, 128, kLarge}).has_value());
    CHECK(second->prepare_kernel(image->entry(), kLarge).has_value());
    CHECK(launch(*second, image, {1, 1, 128, kLarge}).has_value());
}

TEST_CASE("more shared memory than the GPU has is refused with both numbers") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    const auto done = device->prepare_kernel(image->entry(), 228 * 1024);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().value == 228 * 1024);
    CHECK(done.error().limit == 227 * 1024);
    CHECK(contains(done.error().message, "Fake GPU 0"));
}

TEST_CASE("preparing loads the kernel into the context that runs will use") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    test::fake_cuda_make_current(0, kOwnContext);
    CHECK(device->prepare_kernel(image->entry(), 0).has_value());
    CHECK(machine.state().loaded.contains({image->entry(), kOwnContext}));
}

TEST_CASE("preparing keeps the primary context, made or found current, as long as the device") {
    for (const bool found : {false, true}) {
        FakeMachine machine;
        const rt::ImagePtr image = load(machine);
        auto device = machine.device();
        if (found) test::fake_cuda_make_current(0, nullptr);
        CHECK(device->prepare_kernel(image->entry(), 0).has_value());
        CHECK(device->prepare_kernel(image->entry(), 0).has_value());
        CHECK(machine.state().retained[0] == 1);
        device.reset();
        CHECK(machine.state().retained[0] == 0);
    }
}

TEST_CASE("preparing in a context of the caller's makes no other") {
    FakeMachine machine;
    const rt::ImagePtr image = load(machine);
    const auto device = machine.device();
    test::fake_cuda_make_current(0, kOwnContext);
    CHECK(device->prepare_kernel(image->entry(), 0).has_value());
    CHECK(machine.count("cuDevicePrimaryCtxRetain") == 0);
}

TEST_CASE("while another stream is captured, kernels are loaded, launched, waited for and gone") {
    FakeMachine machine;
    machine.state().argument_bytes = sizeof kArguments;
    machine.state().capturing = kCapturedStream;
    const auto done = whole_life(machine);
    CHECK_MESSAGE(done.has_value(), done.error().message);
}

TEST_CASE("the number of multiprocessors is the GPU's") {
    const FakeMachine machine;
    CHECK(machine.device()->multiprocessors() == 132);
}

TEST_CASE("whatever call of preparing and launching fails, nothing stays behind") {
    CHECK(test::fail_everywhere(whole_life) > 20);
    const int calls = test::fail_everywhere([](FakeMachine& machine) {
        test::fake_cuda_make_current(0, nullptr);
        gen::Result<void> done = whole_life(machine);
        rt::cuda::Context popped = nullptr;
        machine.driver().api().context_pop(&popped);
        return done;
    });
    CHECK(calls > 20);
}
