#include "cpu/cpu_backend.h"

#include <mutex>

#include "cpu/clang_compiler.h"
#include "cpu/code_pages.h"
#include "cpu/code_style.h"
#include "cpu/cpu_plan.h"
#include "cpu/host.h"
#include "cpu/jit_collector.h"
#include "cpu/loader.h"

namespace kvjit::rt {
namespace {

class CpuBackend final : public Backend {
public:
    explicit CpuBackend(const BackendOptions& options)
        : compiler_(make_compiler(options.compiler, settings_of_environment(options.templates))), log_(options.log) {}

    Compiler& compiler() override { return *compiler_; }
    gen::Result<void> check_machine(const gen::Target& target) override { return check_cpu(target); }

    gen::Result<ImagePtr> load(std::string_view object, const gen::Program& program, const std::string& name) override {
        std::call_once(collector_told_, [this] {
            if (const auto& collector = JitCollector::get(); !collector) log_(KVJIT_LOG_WARNING, collector.error());
        });
        return load_object(object, program.info->entry(), name, program.launch);
    }

    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const kvjit_batch& batch,
                                            const kvjit_plan_options& options) override {
        return make_cpu_plan(std::move(kernel), batch, options);
    }

    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const RelayoutRequest& request,
                                            const kvjit_plan_options& options) override {
        return make_cpu_plan(std::move(kernel), request, options);
    }

private:
    std::unique_ptr<Compiler> compiler_;
    const Log log_;
    std::once_flag collector_told_;
};

}  // namespace

gen::Result<void> check_cpu(const gen::Target& target) {
    const std::string lacks(gen::missing_feature(target.features, host_target().features));
    if (!lacks.empty()) {
        return gen::fail(KVJIT_BAD_TARGET, "target",
                         "target is " + target.name() + "; this machine lacks its feature " + lacks);
    }
    if (const auto mapping = code_mapping(); !mapping) return std::unexpected(mapping.error());
    return {};
}

std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options) {
    return std::make_unique<CpuBackend>(options);
}

}  // namespace kvjit::rt
