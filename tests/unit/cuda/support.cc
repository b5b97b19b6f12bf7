#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support.h"

#include <algorithm>

#include "elf_bytes.h"

namespace kvjit::test {
namespace {

rt::Driver open_fake() {
    const std::string path = KVJIT_TEST_FAKE_CUDA;
    auto driver = rt::Driver::open({&path, 1});
    REQUIRE_MESSAGE(driver.has_value(), driver.error().message);
    return *driver;
}

}  // namespace

FakeMachine::FakeMachine() : driver_(open_fake()) {
    fake_cuda_reset();
}

FakeMachine::~FakeMachine() {
    CHECK(state().live() == 0);
    for (const std::string& misuse : state().misuses) FAIL_CHECK(misuse);
    fake_cuda_reset();
}

std::unique_ptr<rt::Device> FakeMachine::device(int ordinal) const {
    const auto gpu = rt::find_gpu(driver_, ordinal);
    REQUIRE_MESSAGE(gpu.has_value(), gpu.error().message);
    return rt::make_gpu_device(driver_, *gpu);
}

int FakeMachine::count(std::string_view call) {
    return static_cast<int>(std::ranges::count(state().calls, call));
}

int fail_everywhere(const std::function<gen::Result<void>(FakeMachine&)>& action) {
    for (int call = 1;; ++call) {
        CAPTURE(call);
        FakeMachine machine;
        machine.state().fail_code = rt::cuda::kIllegalAddress;
        machine.state().fail_at = call;
        const auto done = action(machine);
        if (machine.state().fail_at > 0) {
            CHECK_MESSAGE(done.has_value(), done.error().message);
            return call - 1;
        }
        const void* current = fake_cuda_current();
        CHECK(current == nullptr);
        if (done) continue;  // a call that only cleans up
        CHECK(done.error().status == KVJIT_CUDA_ERROR);
        CHECK(contains(done.error().message, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    }
}

std::string fake_cubin() {
    return cubin_of("the code");
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace kvjit::test
