#include "cuda/cuda_backend.h"

#include <map>
#include <mutex>

#include "cuda/cubin_loader.h"
#include "cuda/cuda_plan.h"
#include "cuda/gpu_device.h"
#include "cuda/nvrtc_compiler.h"

namespace kvjit::rt {
namespace {

int driver_major() {
    const gen::Result<Driver>& driver = shared_driver();
    return driver ? driver->version() / 1000 : 0;
}

gen::Result<GpuInfo> gpu_of(int ordinal) {
    const gen::Result<Driver>& driver = shared_driver();
    if (!driver) return std::unexpected(driver.error());
    return find_gpu(*driver, ordinal);
}

class CudaBackend final : public Backend {
public:
    CudaBackend() : compiler_(make_nvrtc_compiler({.path = {}, .driver_major = driver_major})) {}

    Compiler& compiler() override { return *compiler_; }

    gen::Result<void> check_machine(const gen::Target& target) override {
        const gen::Result<GpuInfo> gpu = gpu_of(target.device);
        if (!gpu) return std::unexpected(gpu.error());
        if (gen::runs_on(target, gpu->major, gpu->minor)) return {};
        return gen::fail(KVJIT_BAD_TARGET, "target",
                         "target is " + target.cpu + "; GPU " + std::to_string(gpu->ordinal) + ", " + gpu->name +
                             ", is " + device_target_name(*gpu));
    }

    gen::Result<ImagePtr> load(std::string_view object, const std::string& entry, const std::string& name) override {
        const gen::Result<Driver>& driver = shared_driver();
        if (!driver) return std::unexpected(driver.error());
        if (auto ready = driver->initialise(); !ready) return std::unexpected(ready.error());
        return load_cubin(*driver, object, entry, name);
    }

    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const kvjit_batch& batch,
                                            const kvjit_plan_options& options) override {
        if (auto runs = check_machine(kernel->target()); !runs) return std::unexpected(runs.error());
        const gen::Result<Device*> device = this->device(kernel->target().device);
        if (!device) return std::unexpected(device.error());
        return make_cuda_plan(**device, std::move(kernel), batch, options);
    }

private:
    /// One for each GPU, made at its first plan, shared by all plans.
    gen::Result<Device*> device(int ordinal) {
        const std::lock_guard lock(mutex_);
        if (const auto found = devices_.find(ordinal); found != devices_.end()) return found->second.get();
        const gen::Result<GpuInfo> gpu = gpu_of(ordinal);
        if (!gpu) return std::unexpected(gpu.error());
        return (devices_[ordinal] = make_gpu_device(*shared_driver(), *gpu)).get();
    }

    std::unique_ptr<Compiler> compiler_;
    std::mutex mutex_;
    std::map<int, std::unique_ptr<Device>> devices_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() {
    return std::make_unique<CudaBackend>();
}

gen::Result<gen::Target> gpu_target(int ordinal) {
    const gen::Result<GpuInfo> gpu = gpu_of(ordinal);
    if (!gpu) return std::unexpected(gpu.error());
    gen::Result<gen::Target> target = gen::named_target(device_target_name(*gpu));
    if (target) target->device = ordinal;
    return target;
}

}  // namespace kvjit::rt
