#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support.h"

#include <fstream>
#include <map>
#include <set>

#include "cpu/emulated_device.h"
#include "cpu/host.h"
#include "cpu/loader.h"
#include "emulation/flags.h"

namespace kvjit::test {
namespace {

constexpr std::string_view kInclude = "#include \"";

// A template with its includes in their place, each once.
void flatten(const std::string& path, std::set<std::string>& done, std::string& text) {
    if (!done.insert(path).second) return;
    std::ifstream file(std::string(KVJIT_TEST_TEMPLATES "/") + path);
    REQUIRE_MESSAGE(file.good(), path);
    const auto mark = [&](int line) { return "#line " + std::to_string(line) + " \"" + path + "\"\n"; };
    text += mark(1);
    int number = 1;
    for (std::string line; std::getline(file, line); ++number) {
        if (line.starts_with("#pragma once")) {
            text += "\n";
        } else if (line.starts_with(kInclude)) {
            flatten(line.substr(kInclude.size(), line.size() - kInclude.size() - 1), done, text);
            text += mark(number + 1);
        } else {
            text += line + "\n";
        }
    }
}

std::string source(std::string_view body) {
    std::set<std::string> done;
    std::string text;
    flatten("cuda/machine/emulated.h", done, text);
    text += "namespace kvjit {\nstruct Args { const void* in; void* out; u32* words; i64 number; };\n";
    text += "KVJIT_ENTRY(32, 1) run(KVJIT_PARAM(Args) args) {\n#line 1 \"test.cu\"\n" + std::string(body) + "\n}\n}\n";
    return text;
}

rt::CpuCompiler& compiler() {
    static const auto shared =
        rt::make_compiler(KVJIT_TEST_COMPILER, {.flags = {rt::kEmulationFlags.begin(), rt::kEmulationFlags.end()}});
    return *shared;
}

rt::ImagePtr build(std::string_view body, const gen::Target& target) {
    const auto output = compiler().compile(source(body), "test", target, rt::CompileStage::kObject);
    REQUIRE_MESSAGE(output.has_value(), output.error().message);
    CHECK(output->log == "");
    const auto image = rt::load_object(output->object, "run", "test");
    REQUIRE_MESSAGE(image.has_value(), image.error().message);
    return *image;
}

}  // namespace

rt::ImagePtr kernel(std::string_view body) {
    return build(body, rt::host_target());
}

rt::ImagePtr baseline_kernel(std::string_view body) {
    return build(body, *gen::named_target("x86-64"));
}

std::unique_ptr<rt::Device> device(std::uint64_t seed) {
    auto made = rt::make_emulated_device(compiler(), seed);
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    return *std::move(made);
}

gen::Result<void> launch(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed) {
    static std::map<std::uint64_t, std::unique_ptr<rt::Device>> devices;  // as a process has them: for all launches
    std::unique_ptr<rt::Device>& shared = devices[seed];
    if (!shared) shared = device(seed);
    return shared->launch(image->entry(), grid, &args, sizeof(args), nullptr);
}

void run(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed) {
    const auto result = launch(image, grid, args, seed);
    REQUIRE_MESSAGE(result.has_value(), result.error().message);
}

std::string failure(const rt::ImagePtr& image, const rt::Grid& grid, const Args& args, std::uint64_t seed) {
    const auto result = launch(image, grid, args, seed);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().status == KVJIT_CUDA_ERROR);
    return result.error().message;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

}  // namespace kvjit::test
