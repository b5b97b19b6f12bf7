#include "cuda/cuda_backend.h"

#include <map>
#include <mutex>

#include "cuda/cubin_loader.h"
#include "cuda/cuda_plan.h"
#include "cuda/gpu_device.h"
#include "cuda/nvrtc_compiler.h"
#include "cuda/nvrtc_library.h"
#include "cuda/nvrtc_search.h"
#include "environment.h"

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
    CudaBackend()
        : compiler_(make_nvrtc_compiler(
              {.path = {}, .driver_major = driver_major, .line_info = is_switched_on(Variable::kLineInfo)})) {}

    Compiler& compiler() override { return *compiler_; }

    gen::Result<void> check_machine(const gen::Target& target) override {
        const gen::Result<Gpu*> gpu = this->gpu(target.device);
        if (!gpu) return std::unexpected(gpu.error());
        const GpuInfo& info = (*gpu)->info;
        if (gen::runs_code(info.major * 10 + info.minor, target.architecture)) return {};
        return gen::fail(KVJIT_BAD_TARGET, "target",
                         "target is " + target.name() + "; GPU " + std::to_string(info.ordinal) + ", " + info.name +
                             ", is " + device_target_name(info));
    }

    gen::Result<ImagePtr> load(std::string_view object, const gen::Program& program, const std::string& name) override {
        const gen::Result<Driver>& driver = shared_driver();
        if (!driver) return std::unexpected(driver.error());
        if (auto ready = driver->initialise(); !ready) return std::unexpected(ready.error());
        return load_cubin(*driver, object, program.info->entry(), name, program.launch);
    }

    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const kvjit_batch& batch,
                                            const kvjit_plan_options& options) override {
        if (auto runs = check_machine(kernel->target()); !runs) return std::unexpected(runs.error());
        Device& device = *(*gpu(kernel->target().device))->device;  // before the kernel is moved away
        return make_cuda_plan(device, std::move(kernel), batch, options);
    }

    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const RelayoutRequest& request,
                                            const kvjit_plan_options& options) override {
        if (auto runs = check_machine(kernel->target()); !runs) return std::unexpected(runs.error());
        Device& device = *(*gpu(kernel->target().device))->device;  // before the kernel is moved away
        return make_cuda_plan(device, std::move(kernel), request, options);
    }

private:
    struct Gpu {
        GpuInfo info;
        std::unique_ptr<Device> device;
    };

    /// Queried from the driver once, shared by all plans. A missing GPU may appear later: failures are not kept.
    gen::Result<Gpu*> gpu(int ordinal) {
        const std::lock_guard lock(mutex_);
        if (const auto found = gpus_.find(ordinal); found != gpus_.end()) return &found->second;
        const gen::Result<GpuInfo> info = gpu_of(ordinal);
        if (!info) return std::unexpected(info.error());
        return &(gpus_[ordinal] = Gpu{*info, make_gpu_device(*shared_driver(), *info)});
    }

    std::unique_ptr<Compiler> compiler_;
    std::mutex mutex_;
    std::map<int, Gpu> gpus_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() {
    return std::make_unique<CudaBackend>();
}

gen::Result<gen::Target> gpu_target(int ordinal) {
    const gen::Result<GpuInfo> gpu = gpu_of(ordinal);
    if (!gpu) return std::unexpected(gpu.error());
    const int numbers[] = {gpu->major * 10 + gpu->minor};  // it exists, whether listed or not
    gen::Result<gen::Target> target = gen::named_target(device_target_name(*gpu), numbers);
    if (target) target->device = ordinal;
    return target;
}

gen::Result<gen::Target> architecture_target(std::string_view name) {
    gen::Result<gen::Target> listed = gen::named_target(name);
    if (listed) return listed;
    const gen::Result<std::string> path = find_nvrtc({}, driver_major());
    const gen::Result<NvrtcLibrary> library = path ? open_nvrtc(*path) : std::unexpected(path.error());
    return library ? gen::named_target(name, library->architectures) : listed;
}

}  // namespace kvjit::rt
