#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support.h"

namespace kvjit::test {

rt::CpuCompiler& compiler() {
    static const std::unique_ptr<rt::CpuCompiler> shared = rt::make_compiler(KVJIT_TEST_COMPILER);
    return *shared;
}

std::string sample_source(int vector_bytes) {
    return "constexpr int kVectorBytes = " + std::to_string(vector_bytes) + ";\n#line 1 \"sample_kernel.cc\"\n" +
           read_file(KVJIT_TEST_SAMPLE);
}

std::string compile(std::string_view source, const gen::Target& target, rt::CompileStage stage) {
    const auto output = compiler().compile(source, "test.cc", target, stage);
    REQUIRE_MESSAGE(output.has_value(), output.error().message);
    return output->object;
}

gen::Target level(std::string_view name) {
    const auto target = gen::named_target(name);
    REQUIRE(target.has_value());
    return *target;
}

rt::ImagePtr load(std::string_view source, const std::string& entry) {
    const auto image = rt::load_object(compile(source, rt::host_target()), entry, "test");
    REQUIRE_MESSAGE(image.has_value(), image.error().message);
    return *image;
}

}  // namespace kvjit::test
