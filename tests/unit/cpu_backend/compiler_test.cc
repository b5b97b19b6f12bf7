// What the compiler makes, refuses and says.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "cpu/clang/flags.h"
#include "cpu/clang/plugin.h"
#include "support.h"
#include "support/build_id.h"
#include "support/temporary_folder.h"

using namespace kvjit;
using test::build_id;
using test::change_build_id;
using test::compile;
using test::compiler;

namespace {

constexpr std::string_view kTwice = "extern \"C\" int twice(int x) { return 2 * x; }\n";

gen::Error refusal(std::string_view source) {
    const auto output = compiler().compile(source, "test.cc", rt::host_target(), rt::CompileStage::kObject);
    REQUIRE_FALSE(output.has_value());
    return output.error();
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

std::size_t resident_bytes() {
    std::size_t total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("each stage gives its own product") {
    const std::string object = compile(kTwice, rt::host_target());
    CHECK(
        object.starts_with("\x7f"
                           "ELF"));
    CHECK(contains(object, "debug_line"));
    CHECK(contains(compile(kTwice, rt::host_target(), rt::CompileStage::kIr), "i32 @twice("));
    const std::string assembly = compile(kTwice, rt::host_target(), rt::CompileStage::kAsm);
    CHECK(contains(assembly, "twice:"));
    CHECK(contains(assembly, ".stack_sizes"));
}

TEST_CASE("unoptimised IR is Clang's, before any pass") {
    const std::string source = "extern \"C\" int f(int x) { int y = x; return y + 1; }\n";
    CHECK(contains(compile(source, rt::host_target(), rt::CompileStage::kIrUnoptimised), "%y = alloca i32"));
    CHECK_FALSE(contains(compile(source, rt::host_target(), rt::CompileStage::kIr), "alloca"));
}

TEST_CASE("an error carries the compiler's log with the template's line") {
    const gen::Error error = refusal("#line 41 \"cpu/attend.cc\"\nint f() { return missing; }\n");
    CHECK(error.status == KVJIT_COMPILE_FAILED);
    CHECK(contains(error.message, "cpu/attend.cc:41:18: error: use of undeclared identifier 'missing'"));
}

TEST_CASE("a warning reaches the log and stops nothing") {
    const auto output = compiler().compile("extern \"C\" int f(int x) { if (x = 1) return 2; return 3; }", "test.cc",
                                           rt::host_target(), rt::CompileStage::kObject);
    REQUIRE(output.has_value());
    CHECK(contains(output->log, "-Wparentheses"));
}

TEST_CASE("a loop that can't be unrolled as its template asks is a warning with its line") {
    const auto output = compiler().compile(
        "#line 7 \"cpu/attend.cc\"\n"
        "extern \"C\" void f(float* p, int n) {\n"
        "#pragma clang loop unroll(full)\n"
        "for (int i = 0; i < n; ++i) p[i] *= 2; }\n",
        "test.cc", rt::host_target(), rt::CompileStage::kObject);
    REQUIRE(output.has_value());
    CHECK(contains(output->log, "warning: cpu/attend.cc:9:"));
    CHECK(contains(output->log, "loop not unrolled"));
}

TEST_CASE("an error of the assembler fails the compile, not the process") {
    CHECK(contains(refusal("extern \"C\" void f() { asm(\"no such instruction\"); }\n").message, "error: "));
}

TEST_CASE("IR and assembly are those of the object: small functions are inlined, dead ones gone") {
    constexpr std::string_view source =
        "template <int N> int scale(int x) { return x * N; }\n"
        "[[maybe_unused]] static int unused(int x) { return x; }\n"
        "extern \"C\" int f(int x) { int values[2] = {scale<3>(x), 0}; return values[0]; }\n";
    const std::string ir = compile(source, rt::host_target(), rt::CompileStage::kIr);
    CHECK(contains(ir, "mul"));
    CHECK(ir.find("define ") == ir.rfind("define "));
    CHECK_FALSE(contains(ir, "alloca"));
    const std::string assembly = compile(source, rt::host_target(), rt::CompileStage::kAsm);
    CHECK(contains(assembly, "\nf:"));
    CHECK_FALSE(contains(assembly, "\tcall"));
    CHECK_FALSE(contains(assembly, "_Z5scale"));
}

namespace {

/// The log of a compile with these passes, which fails.
std::string log_of_passes(std::string_view passes) {
    void* plugin = dlopen(KVJIT_TEST_COMPILER, RTLD_LOCAL | RTLD_NOW);
    REQUIRE(plugin != nullptr);
    const auto* clang = static_cast<const kvjit_clang_functions*>(dlsym(plugin, KVJIT_CLANG_FUNCTIONS));
    REQUIRE(clang != nullptr);
    const std::array arguments = {"-triple", "x86_64-unknown-linux-gnu", "-emit-obj", "-disable-llvm-passes", "-x",
                                  "c++"};
    std::string log;
    const auto append = [](void* context, const char* bytes, size_t size) {
        static_cast<std::string*>(context)->append(bytes, size);
    };
    const kvjit_clang_request request{kTwice.data(), kTwice.size(), "test.cc", arguments.data(), arguments.size(),
                                      passes.data(), passes.size(), append,    append,           &log};
    CHECK(clang->compile(&request) == 1);
    return log;
}

}  // namespace

TEST_CASE("a pass that LLVM doesn't know is refused by its name") {
    CHECK(log_of_passes("function(sroa),make-it-fast") == "error: unknown module pass 'make-it-fast'\n");
}

TEST_CASE("so is one that is to be left out of code generation, which lacks it") {
    CHECK(log_of_passes("function(sroa),-livedebugvalues,-make-it-slow") ==
          "error: code generation has no pass 'make-it-slow' to leave out\n");
}

TEST_CASE("an undefined symbol is refused by its name") {
    const gen::Error error =
        refusal("extern \"C\" int elsewhere(int);\nextern \"C\" int f() { return elsewhere(1); }\n");
    CHECK(error.status == KVJIT_COMPILE_FAILED);
    CHECK(contains(error.message, "undefined symbol: elsewhere"));
}

TEST_CASE("a library call that the compiler makes up is an undefined symbol too") {
    const gen::Error error =
        refusal("struct Big { char bytes[4096]; };\nvoid f(Big* to, Big* from) { *to = *from; }\n");
    CHECK(contains(error.message, "undefined symbol: memcpy"));
}

TEST_CASE("a global's constructor is refused: it would never run") {
    CHECK(contains(refusal("int g();\nint value = g();\n").message, "global constructor"));
}

TEST_CASE("no file of the machine can be included") {
    CHECK(contains(refusal("#include <stddef.h>\n").message, "'stddef.h' file not found"));
    CHECK(contains(refusal("#include \"/etc/hostname\"\n").message, "file not found"));
}

TEST_CASE("a target that is no CPU is refused") {
    const auto output = compiler().compile(kTwice, "test.cc", *gen::named_target("sm_80"), rt::CompileStage::kObject);
    REQUIRE_FALSE(output.has_value());
    CHECK(output.error().status == KVJIT_BAD_TARGET);
}

TEST_CASE("objects are the same, byte for byte, in every compile and from every folder") {
    const std::string first = compile(test::sample_source(32), test::level("x86-64-v3"));
    const auto other = rt::make_compiler(KVJIT_TEST_COMPILER);
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path("/");
    const auto second =
        other->compile(test::sample_source(32), "test.cc", test::level("x86-64-v3"), rt::CompileStage::kObject);
    std::filesystem::current_path(here);
    REQUIRE(second.has_value());
    CHECK(first == second->object);
    CHECK_FALSE(contains(first, here.string()));
}

TEST_CASE("the object names its source as it was told") {
    const auto output = compiler().compile(kTwice, "attend_decode.cc", rt::host_target(), rt::CompileStage::kObject);
    REQUIRE(output.has_value());
    CHECK(contains(output->object, "attend_decode.cc"));
}

TEST_CASE("eight threads compile at once and each gets its own code") {
    std::vector<int> results(8);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([i, &results] {
            const std::string source = "extern \"C\" int f(int x) { return x * 10 + " + std::to_string(i) + "; }";
            const auto output = compiler().compile(source, "test.cc", rt::host_target(), rt::CompileStage::kObject);
            if (!output) return;
            const auto image = rt::load_object(output->object, "f", "test");
            if (image) results[i] = test::as<int(int)>(*image)(7);
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 8; ++i) CHECK(results[i] == 70 + i);
}

// A sanitizer keeps freed memory back on purpose.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST_CASE("sixty compiles leave no memory behind" * doctest::skip(kSanitized)) {
    const std::string large = test::sample_source(32);
    const auto compile_sixty = [&] {
        for (int i = 0; i < 60; ++i) compile(i % 6 == 0 ? std::string_view(large) : kTwice, test::level("x86-64-v3"));
    };
    compile_sixty();
    const std::size_t before = resident_bytes();
    compile_sixty();
    const std::size_t after = resident_bytes();
    MESSAGE("resident before: " << (before >> 10) << " KiB, after: " << (after >> 10) << " KiB");
    CHECK(after < before + (8U << 20));
}

TEST_CASE("the identity names the plugin, every flag and the passes; no other Clang or LLVM gets mapped") {
    const auto identity = compiler().identity();
    REQUIRE_MESSAGE(identity.has_value(), identity.error().message);
    for (const char* flag : rt::kClangFlags) CHECK(contains(*identity, flag));
    CHECK(contains(*identity, rt::kClangPasses));
    CHECK(identity->starts_with("libkvjit_compiler build=" + build_id(KVJIT_TEST_COMPILER) + "\n"));
    compile(kTwice, rt::host_target());
    std::ifstream maps("/proc/self/maps");
    int compilers = 0;
    for (std::string line; std::getline(maps, line);) {
        compilers += contains(line, "libkvjit_compiler");
        CHECK_FALSE(contains(line, "libLLVM"));
        CHECK_FALSE(contains(line, "libclang"));
    }
    CHECK(compilers > 0);
}

TEST_CASE("a copy in another folder, of another time, is the same compiler; another build is another one") {
    const test::TemporaryFolder folder;
    const std::string copy = folder.path("renamed.so");
    std::filesystem::copy_file(KVJIT_TEST_COMPILER, copy);
    const auto here = rt::make_compiler(KVJIT_TEST_COMPILER)->identity();
    const auto there = rt::make_compiler(copy)->identity();
    REQUIRE(here.has_value());
    REQUIRE(there.has_value());
    CHECK(*here == *there);
    change_build_id(copy);
    CHECK(*rt::make_compiler(copy)->identity() != *here);
}

TEST_CASE("a missing compiler is an error that says where it was looked for and what to do") {
    const auto missing = rt::make_compiler("/nowhere/libkvjit_compiler.so");
    CHECK(missing->load_seconds() == 0);
    const auto identity = missing->identity();
    REQUIRE_FALSE(identity.has_value());
    CHECK(identity.error().status == KVJIT_COMPILER_MISSING);
    const auto output = missing->compile(kTwice, "test.cc", rt::host_target(), rt::CompileStage::kObject);
    REQUIRE_FALSE(output.has_value());
    CHECK(output.error().status == KVJIT_COMPILER_MISSING);
    CHECK(contains(output.error().message, "/nowhere/libkvjit_compiler.so"));
    CHECK(contains(output.error().message, "KVJIT_COMPILER"));
    CHECK(contains(output.error().message, "install libkvjit_compiler.so there"));
}

TEST_CASE("a file that is no compiler is refused") {
    for (const char* path : {"/proc/self/exe", "/etc/passwd"}) {
        const auto other = rt::make_compiler(path);
        const auto output = other->compile(kTwice, "test.cc", rt::host_target(), rt::CompileStage::kObject);
        REQUIRE_FALSE(output.has_value());
        CHECK(output.error().status == KVJIT_COMPILER_MISSING);
    }
    CHECK_FALSE(rt::make_compiler("/etc/passwd")->identity().has_value());
}
