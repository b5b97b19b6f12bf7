// The real NVRTC, where there is one: it needs no GPU. Without one the program says SKIP.
#define DOCTEST_CONFIG_IMPLEMENT
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "cuda/compile_report.h"
#include "cuda/nvrtc_compiler.h"
#include "cuda/nvrtc_library.h"
#include "cuda/nvrtc_search.h"
#include "elf_view.h"
#include "generator/architecture.h"
#include "library_file.h"

using namespace kvjit;

namespace {

constexpr std::string_view kScale = R"(
struct Args { const float* x; float* y; float factor; };
__forceinline__ float scaled(float x, float factor) { return x * factor + 1; }
extern "C" __global__ void __launch_bounds__(128, 1) scale(const __grid_constant__ Args args) {
    const long i = long{blockIdx.x} * 128 + threadIdx.x;
    args.y[i] = scaled(args.x[i], args.factor);
}
)";

// 96 values that all have to be there before the first is written, in the 64 registers that the bounds leave.
constexpr std::string_view kSpilling = R"(
extern "C" __global__ void __launch_bounds__(128, 8) reversed(const float* x, float* y) {
    __shared__ float first[128];
    float values[96];
    #pragma unroll
    for (int i = 0; i < 96; ++i) values[i] = x[i * 128 + threadIdx.x];
    first[threadIdx.x] = values[0];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 96; ++i) y[i * 128 + threadIdx.x] = values[95 - i] * first[(threadIdx.x + i) % 128];
}
)";

rt::Compiler& compiler() {
    static const auto shared = rt::make_nvrtc_compiler({});
    return *shared;
}

gen::Target target(const std::string& name) {
    constexpr int kFurther[] = {95, 999};
    const auto found = gen::named_target(name, kFurther);
    REQUIRE_MESSAGE(found.has_value(), found.error().message);
    return *found;
}

gen::Result<rt::CompileOutput> compile(std::string_view source, const std::string& cpu,
                                       rt::CompileStage stage = rt::CompileStage::kObject) {
    return compiler().compile(source, "test", target(cpu), stage);
}

rt::CompileOutput compiled(std::string_view source, const std::string& cpu,
                           rt::CompileStage stage = rt::CompileStage::kObject) {
    auto output = compile(source, cpu, stage);
    REQUIRE_MESSAGE(output.has_value(), output.error().message);
    return *std::move(output);
}

gen::Error refusal(std::string_view source, const std::string& cpu,
                   rt::CompileStage stage = rt::CompileStage::kObject) {
    const auto output = compile(source, cpu, stage);
    REQUIRE_FALSE(output.has_value());
    return output.error();
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

/// Path of the first mapped file whose path holds the text; empty: none.
std::string mapped_path(const char* text) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (contains(line, text)) return line.substr(line.find('/'));
    }
    return {};
}

bool is_mapped(const char* library) {
    return !mapped_path(library).empty();
}

/// Architectures of sm_80 and newer that this NVRTC names; they depend on its version.
std::vector<std::string> known_targets() {
    std::vector<std::string> names;
    for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120", "sm_120a"}) {
        if (compile(kScale, name)) names.emplace_back(name);
    }
    return names;
}

}  // namespace

// The first one, before anything has opened NVRTC.
TEST_CASE("the identity is known without loading NVRTC: build ids, flags") {
    REQUIRE_FALSE(is_mapped("libnvrtc"));
    const auto identity = compiler().identity();
    REQUIRE_MESSAGE(identity.has_value(), identity.error().message);
    CHECK_FALSE(is_mapped("libnvrtc"));
    CHECK(compiler().load_seconds() == 0);
    CHECK(identity->starts_with("libnvrtc"));
    CHECK(contains(*identity, "\nlibnvrtc-builtins"));
    CHECK(contains(*identity, "flags --std=c++20"));
    CHECK(*compiler().identity() == *identity);
    compiled(kScale, "sm_80");
    CHECK(identity->starts_with(rt::LibraryFile::open(mapped_path("libnvrtc."))->describe("libnvrtc")));
    CHECK(compiler().load_seconds() > 0);
    CHECK(*compiler().identity() == *identity);
}

TEST_CASE("a cubin is whole, for CUDA, and has the entry under its own name") {
    const std::vector<std::string> names = known_targets();
    REQUIRE(names.size() >= 4);
    for (const std::string& name : names) {
        CAPTURE(name);
        const rt::CompileOutput output = compiled(kScale, name);
        const auto elf = rt::ElfView::open(output.object);
        REQUIRE(elf.has_value());
        CHECK(elf->machine() == 190);
        CHECK(elf->is_whole());
        CHECK(contains(output.object, ".text.scale"));
        CHECK(contains(output.log, "'scale' for '" + name + "'"));
    }
}

TEST_CASE("the assembly is PTX for the virtual architecture") {
    const std::string ptx = compiled(kScale, "sm_90a", rt::CompileStage::kAsm).object;
    CHECK(contains(ptx, ".target sm_90a"));
    CHECK(contains(ptx, ".entry scale("));
    CHECK(contains(ptx, "fma.rn.f32"));
    CHECK_FALSE(ptx.ends_with('\0'));
}

TEST_CASE("CUDA has no LLVM IR") {
    for (const rt::CompileStage stage : {rt::CompileStage::kIr, rt::CompileStage::kIrUnoptimised}) {
        const gen::Error error = refusal(kScale, "sm_80", stage);
        CHECK(error.status == KVJIT_BAD_ARGUMENT);
        CHECK(contains(error.message, "PTX"));
    }
}

TEST_CASE("the log says what each kernel takes, spills included, and no times") {
    const rt::CompileOutput output = compiled(kSpilling, "sm_80");
    CHECK_FALSE(contains(output.log, "Compile time"));
    const auto reports = rt::parse_compile_report(output.log);
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].entry == "reversed");
    CHECK(reports[0].registers == 64);
    CHECK(reports[0].stack_bytes > 0);
    CHECK(reports[0].spill_store_bytes > 0);
    CHECK(reports[0].spill_load_bytes > 0);
    CHECK(reports[0].shared_bytes == 512);
    const auto light = rt::parse_compile_report(compiled(kScale, "sm_80").log);
    REQUIRE(light.size() == 1);
    CHECK(light[0].registers > 0);
    CHECK(light[0].spill_store_bytes == 0);
}

TEST_CASE("an error carries NVRTC's log with the template's line") {
    const gen::Error error = refusal("#line 41 \"templates/cuda/store.cu\"\nint f() { return missing; }\n", "sm_80");
    CHECK(error.status == KVJIT_COMPILE_FAILED);
    CHECK(contains(error.message, "test doesn't compile"));
    CHECK(contains(error.message, "templates/cuda/store.cu(41): error: identifier \"missing\" is undefined"));
}

TEST_CASE("what ptxas refuses is an error with its log too") {
    const gen::Error error = refusal("extern \"C\" __global__ void f() { asm(\"nonsense.b32;\"); }", "sm_80");
    CHECK(error.status == KVJIT_COMPILE_FAILED);
    CHECK(contains(error.message, "nonsense"));
}

TEST_CASE("no file of the machine can be included by a name that a template would use") {
    CHECK(contains(refusal("#include \"cuda/cache/row_lanes.h\"\n", "sm_80").message, "cuda/cache/row_lanes.h"));
}

TEST_CASE("a target that this NVRTC doesn't know is refused with those that it knows") {
    const gen::Error error = refusal(kScale, "sm_999");  // a target of someone who knows more
    CHECK(error.status == KVJIT_BAD_TARGET);
    CHECK(contains(error.message, "sm_999"));
    CHECK(contains(error.message, " sm_80 "));
    CHECK(contains(error.message, "newer NVRTC"));
    CHECK(refusal(kScale, "sm_95a").status == KVJIT_BAD_TARGET);  // a name as good as any, but no GPU
}

TEST_CASE(
    "code is made for the target itself where this NVRTC knows it, else for what runs there; a CPU stays as it is") {
    for (const char* name : {"sm_80", "sm_89", "sm_90a", "x86-64-v3"}) {
        CHECK(compiler().known_target(target(name)) == target(name));
    }
    const gen::Target wanted = *gen::named_target("sm_105a", std::array{105});
    const gen::Target known = compiler().known_target(wanted);
    CHECK((known == wanted || known.name() == "sm_100" || known.name() == "sm_103"));
}

TEST_CASE("the list of architectures has what this NVRTC knows, no later than the list says") {
    const auto path = rt::find_nvrtc({}, 0);
    REQUIRE(path.has_value());
    const auto library = rt::open_nvrtc(*path);
    REQUIRE_MESSAGE(library.has_value(), library.error().message);
    for (const int number : library->architectures) {
        CAPTURE(number);
        const gen::KnownArchitecture* known = gen::find_architecture(number);
        if (known != nullptr) CHECK(known->cuda <= library->version);
        const bool must = number >= 80 && library->version <= 13000;
        CHECK((known != nullptr || !must));
    }
}

TEST_CASE("a CPU is no target of NVRTC's") {
    CHECK(refusal(kScale, "x86-64-v3").status == KVJIT_BAD_TARGET);
}

TEST_CASE("cubins are the same, byte for byte, in every compile, and so is the log") {
    const rt::CompileOutput first = compiled(kScale, "sm_90a"), second = compiled(kScale, "sm_90a");
    CHECK(first.object == second.object);
    CHECK(first.log == second.log);
}

TEST_CASE("line information is another flag, another identity and another cubin") {
    const auto lines = rt::make_nvrtc_compiler({{}, {}, true});
    CHECK(*lines->identity() == *compiler().identity() + " --generate-line-info");
    const auto output = lines->compile(kScale, "test", target("sm_80"), rt::CompileStage::kObject);
    REQUIRE(output.has_value());
    CHECK(contains(output->object, ".debug_line"));
    CHECK_FALSE(contains(compiled(kScale, "sm_80").object, ".debug_line"));
}

TEST_CASE("the driver's version is asked for once, by the first who needs it") {
    int asked = 0;
    const auto made = rt::make_nvrtc_compiler({{}, [&] { return ++asked, 13; }, false});
    CHECK(asked == 0);
    REQUIRE(made->identity().has_value());
    REQUIRE(made->compile(kScale, "test", target("sm_80"), rt::CompileStage::kObject).has_value());
    CHECK(asked == 1);
}

TEST_CASE("four threads compile at once and each gets its own code") {
    std::vector<std::string> cubins(4);
    std::vector<std::thread> threads;
    const auto source = [](std::size_t i) {
        return "extern \"C\" __global__ void kernel_" + std::to_string(i) + "(int* x) { *x = " + std::to_string(i) +
               "; }";
    };
    for (std::size_t i = 0; i < cubins.size(); ++i) {
        threads.emplace_back([&, i] {
            if (const auto output = compile(source(i), "sm_80")) cubins[i] = output->object;
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < cubins.size(); ++i) {
        CHECK(contains(cubins[i], ".text.kernel_" + std::to_string(i)));
        CHECK(cubins[i] == compiled(source(i), "sm_80").object);
    }
}

namespace {

/// The status of `action`, done in a process of its own, in which NVRTC isn't loaded yet; -1: it crashed.
int status_in_child(const std::function<int()>& action) {
    const pid_t child = fork();
    if (child == 0) _exit(action());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// NVRTC finds by its name what the process has loaded.
int compile_beside_part_of_driver() {
    if (dlopen(KVJIT_TEST_CUDA_PART, RTLD_NOW) == nullptr) return 100;
    const auto output =
        rt::make_nvrtc_compiler({})->compile(kScale, "test", *gen::named_target("sm_80"), rt::CompileStage::kObject);
    return output ? KVJIT_OK : output.error().status;
}

/// Whether NVRTC is missing, or too old; says why.
bool is_missing() {
    return status_in_child([] {
               const auto output = rt::make_nvrtc_compiler({})->compile(kScale, "test", *gen::named_target("sm_80"),
                                                                        rt::CompileStage::kObject);
               const bool missing = !output && output.error().status == KVJIT_COMPILER_MISSING;
               if (missing) std::printf("SKIP: %s\n", output.error().message.c_str());
               std::fflush(stdout);
               return missing ? 1 : 0;
           }) == 1;
}

}  // namespace

int status_beside_part_of_driver = -1;

TEST_CASE("beside a part of a driver NVRTC compiles, or the driver is named: no crash") {
    CHECK((status_beside_part_of_driver == KVJIT_OK || status_beside_part_of_driver == KVJIT_CUDA_ERROR));
}

int main(int count, char** arguments) {
    if (is_missing()) return 0;
    status_beside_part_of_driver = status_in_child(compile_beside_part_of_driver);
    doctest::Context context(count, arguments);
    context.setOption("order-by", "file");
    return context.run();
}
