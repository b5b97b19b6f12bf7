// Which GPU, and what kernels for it are compiled for.
#include "cuda/gpu_info.h"

#include "generator/architecture.h"
#include "generator/target.h"
#include "support.h"

using namespace kvjit;
using test::contains;
using test::FakeMachine;

namespace {

gen::Error refusal(FakeMachine& machine, int ordinal) {
    const auto gpu = rt::find_gpu(machine.driver(), ordinal);
    REQUIRE_FALSE(gpu.has_value());
    CHECK(gpu.error().status == KVJIT_CUDA_ERROR);
    return gpu.error();
}

std::string target_name(int major, int minor) {
    rt::GpuInfo gpu;
    gpu.major = major;
    gpu.minor = minor;
    return rt::device_target_name(gpu);
}

}  // namespace

TEST_CASE("a GPU is as the driver says, and asking makes no context") {
    FakeMachine machine;
    const auto gpu = rt::find_gpu(machine.driver(), 1);
    REQUIRE_MESSAGE(gpu.has_value(), gpu.error().message);
    CHECK(gpu->ordinal == 1);
    CHECK(gpu->name == "Fake GPU 1");
    CHECK(gpu->multiprocessors == 132);
    CHECK(gpu->max_shared_bytes == 227 * 1024);
    CHECK(rt::device_target_name(*gpu) == "sm_90a");
    CHECK(machine.count("cuDevicePrimaryCtxRetain") == 0);
}

TEST_CASE("a target's name is the compute capability, specific from Hopper on") {
    CHECK(target_name(8, 0) == "sm_80");
    CHECK(target_name(8, 6) == "sm_86");
    CHECK(target_name(8, 9) == "sm_89");
    CHECK(target_name(9, 0) == "sm_90a");
    CHECK(target_name(10, 0) == "sm_100a");
    CHECK(target_name(10, 3) == "sm_103a");
    CHECK(target_name(12, 1) == "sm_121a");
}

TEST_CASE("every such name is a target") {
    for (const gen::KnownArchitecture& known : gen::known_architectures()) {
        CHECK(gen::named_target(target_name(known.number / 10, known.number % 10)).has_value());
    }
}

TEST_CASE("a GPU older than Ampere is refused by its name and capability") {
    FakeMachine machine;
    machine.state().major = 7;
    machine.state().minor = 5;
    const gen::Error error = refusal(machine, 0);
    CHECK(contains(error.message, "Fake GPU 0"));
    CHECK(contains(error.message, "7.5"));
    CHECK(contains(error.message, "8.0"));
}

TEST_CASE("an ordinal that isn't there is refused with their number") {
    FakeMachine machine;
    for (const int ordinal : {2, -1}) {
        const gen::Error error = refusal(machine, ordinal);
        CHECK(error.value == ordinal);
        CHECK(error.limit == 1);
        CHECK(contains(error.message, "there are 2"));
    }
}

TEST_CASE("a machine without a GPU says so, whether the driver starts or not") {
    FakeMachine machine;
    machine.state().gpus = 0;
    CHECK(contains(refusal(machine, 0).message, "CUDA_ERROR_NO_DEVICE"));
    machine.state().fail_at = 1;
    machine.state().fail_code = rt::cuda::kNoDevice;
    CHECK(contains(refusal(machine, 0).message, "starting the NVIDIA driver failed: CUDA_ERROR_NO_DEVICE"));
}

TEST_CASE("whatever call fails, the error has its code") {
    const int calls = test::fail_everywhere([](FakeMachine& machine) -> gen::Result<void> {
        if (const auto gpu = rt::find_gpu(machine.driver(), 0); !gpu) return std::unexpected(gpu.error());
        return {};
    });
    CHECK(calls == 8);  // init, count, get, name, four attributes
}
