#include "cpu/emulated_backend.h"

#include <mutex>

#include "cpu/clang/flags.h"
#include "cpu/clang_compiler.h"
#include "cpu/code_style.h"
#include "cpu/cpu_backend.h"
#include "cpu/emulated_device.h"
#include "cpu/loader.h"
#include "cuda/cuda_plan.h"
#include "emulation/flags.h"
#include "environment.h"

namespace kvjit::rt {
namespace {

CompilerSettings compiler_settings(const std::string& templates) {
    CompilerSettings settings = settings_of_environment(templates);
    settings.flags.insert(settings.flags.begin(), kEmulationFlags.begin(), kEmulationFlags.end());
    if (settings.passes != kLocalsPasses) settings.passes = kEmulationPasses;
    return settings;
}

class EmulatedBackend final : public Backend {
public:
    explicit EmulatedBackend(const BackendOptions& options)
        : compiler_(make_compiler(options.compiler, compiler_settings(options.templates))) {}

    Compiler& compiler() override { return *compiler_; }

    gen::Result<void> check_machine(const gen::Target& target) override {
        if (auto runs = check_cpu(target); !runs) return runs;
        const gen::Result<Device*> device = this->device();
        if (!device) return std::unexpected(device.error());
        return {};
    }

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
    /// Made when the first program is asked for.
    gen::Result<Device*> device() {
        const std::lock_guard lock(mutex_);
        if (device_) return device_.get();
        const gen::Result<std::uint64_t> seed = seed_of_environment();
        if (!seed) return std::unexpected(seed.error());
        gen::Result<std::unique_ptr<Device>> made = make_emulated_device(*compiler_, *seed);
        if (!made) return std::unexpected(made.error());
        device_ = *std::move(made);
        return device_.get();
    }

    std::unique_ptr<CpuCompiler> compiler_;
    std::mutex mutex_;
    std::unique_ptr<Device> device_;
};

}  // namespace

std::unique_ptr<Backend> make_emulated_backend(const BackendOptions& options) {
    return std::make_unique<EmulatedBackend>(options);
}

}  // namespace kvjit::rt
