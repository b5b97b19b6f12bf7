#include "cpu/cpu_backend.h"

#include <filesystem>
#include <system_error>

#include "cpu/clang_compiler.h"
#include "cpu/code_pages.h"
#include "cpu/cpu_plan.h"
#include "cpu/host.h"
#include "cpu/loader.h"
#include "environment.h"

namespace kvjit::rt {
namespace {

/// Lines of debug info name files that exist: sources name them as templates/..., for every machine.
std::string name_files(const std::string& templates) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::absolute(templates, error);
    return "-fdebug-prefix-map=templates/=" + (folder / "").lexically_normal().string();
}

CompilerSettings compiler_settings(const std::string& templates) {
    const CodeStyle style = code_style_of_environment();
    if (style == CodeStyle::kOptimised) return {};
    CompilerSettings settings =
        style == CodeStyle::kFrames
            ? CompilerSettings{.flags = {kFramesFlags.begin(), kFramesFlags.end()}, .mark = "// KVJIT_DEBUG=frames\n"}
            : CompilerSettings{.flags = {kLocalsFlags.begin(), kLocalsFlags.end()},
                               .passes = kLocalsPasses,
                               .mark = "// KVJIT_DEBUG=1\n"};
    if (!templates.empty()) settings.flags.push_back(name_files(templates));
    return settings;
}

class CpuBackend final : public Backend {
public:
    explicit CpuBackend(const BackendOptions& options)
        : compiler_(make_compiler(options.compiler, compiler_settings(options.templates))) {}

    Compiler& compiler() override { return *compiler_; }
    gen::Result<void> check_machine(const gen::Target& target) override { return check_cpu(target); }

    gen::Result<ImagePtr> load(std::string_view object, const gen::Program& program, const std::string& name) override {
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
