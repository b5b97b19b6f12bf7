#include "cuda/emulation/emulated_backend.h"

#include <mutex>

#include "cpu/clang_compiler.h"
#include "cpu/cpu_backend.h"
#include "cpu/loader.h"
#include "cuda/cuda_plan.h"
#include "cuda/emulation/emulator.h"
#include "cuda/emulation/flags.h"

namespace kvjit::rt {
namespace {

class EmulatedBackend final : public Backend {
public:
    explicit EmulatedBackend(const std::string& compiler) : compiler_(make_compiler(compiler, kEmulationFlags)) {}

    Compiler& compiler() override { return *compiler_; }
    gen::Result<void> check_machine(const gen::Target& target) override { return check_cpu(target); }

    gen::Result<ImagePtr> load(std::string_view object, const gen::Program& program, const std::string& name) override {
        return load_object(object, program.info->entry(), name, program.launch);
    }

    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const kvjit_batch& batch,
                                            const kvjit_plan_options& options) override {
        const gen::Result<Device*> device = this->device();
        if (!device) return std::unexpected(device.error());
        return make_cuda_plan(**device, std::move(kernel), batch, options);
    }

    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const RelayoutRequest& request,
                                            const kvjit_plan_options& options) override {
        const gen::Result<Device*> device = this->device();
        if (!device) return std::unexpected(device.error());
        return make_cuda_plan(**device, std::move(kernel), request, options);
    }

private:
    /// Made at the first plan.
    gen::Result<Device*> device() {
        const std::lock_guard lock(mutex_);
        if (device_) return device_.get();
        const gen::Result<EmulatorOptions> options = emulator_options();
        if (!options) return std::unexpected(options.error());
        device_ = make_emulator(*options);
        return device_.get();
    }

    std::unique_ptr<Compiler> compiler_;
    std::mutex mutex_;
    std::unique_ptr<Device> device_;
};

}  // namespace

std::unique_ptr<Backend> make_emulated_backend(const std::string& compiler) {
    return std::make_unique<EmulatedBackend>(compiler);
}

}  // namespace kvjit::rt
