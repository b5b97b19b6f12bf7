#include "cpu/code_style.h"

#include <filesystem>
#include <system_error>

#include "environment.h"

namespace kvjit::rt {
namespace {

/// Lines of debug info name files that exist: sources name them as templates/..., for every machine.
std::string name_files(const std::string& templates) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::absolute(templates, error);
    return "-fdebug-prefix-map=templates/=" + (folder / "").lexically_normal().string();
}

}  // namespace

CompilerSettings settings_of_environment(const std::string& templates) {
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

}  // namespace kvjit::rt
