// What the tests of the CUDA driver's side share.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <string_view>

#include "cuda/driver.h"
#include "cuda/gpu_device.h"
#include "fake_cuda.h"

namespace kvjit::test {

/// The fake driver, as if freshly started; at the end nothing may live that was made meanwhile.
class FakeMachine {
public:
    FakeMachine();
    ~FakeMachine();

    FakeCuda& state() { return *fake_cuda(); }
    const rt::Driver& driver() const { return driver_; }
    std::unique_ptr<rt::Device> device(int ordinal = 0) const;
    int count(std::string_view call);

private:
    rt::Driver driver_;
};

/// Runs `action` on fresh machines, with the first driver call failing, then the second..., until it succeeds. Where
/// it fails nothing may stay behind, and the error must name the code. Gives the number of failing runs.
int fail_everywhere(const std::function<gen::Result<void>(FakeMachine&)>& action);

/// Bytes that pass for a cubin.
std::string fake_cubin();

bool contains(const std::string& text, std::string_view part);

}  // namespace kvjit::test
