// What the stand-ins for CUDA's libraries are made of: options, PTX within a cubin, launches.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <elf.h>

#include <cstring>
#include <string>

#include "ptx/driver/elf_section.h"
#include "ptx/lab.h"

namespace kvjit::ptx {
namespace {

TEST_CASE("options are read, and what is wrong with them is said") {
    const Options options = parse_options(
        "seed=7,capability=9.0,multiprocessors=132,blocks=4,copies=wait,wgmma=issue,mma=hopper,noise=0,stores=plain");
    CHECK(options.seed == 7);
    CHECK(options.major == 9);
    CHECK(options.minor == 0);
    CHECK(options.multiprocessors == 132);
    CHECK(options.resident_blocks == 4);
    CHECK(options.copies == Copies::kAtWait);
    CHECK(options.products == ProductTime::kAtIssue);
    CHECK(options.sums.terms == 16);
    CHECK(!options.has_noise);
    CHECK(!options.has_late_stores);
    CHECK(parse_options("").copies == Copies::kPoisoned);
    CHECK_THROWS_WITH(parse_options("copies=never"), "copies is 'never', expected one of issue, poison, wait");
    CHECK_THROWS_WITH(parse_options("blocks=0"), "blocks is '0', expected a number from 1 to 64");
    CHECK_THROWS_WITH(parse_options("capability=7.5"), "capability is '7', expected a number from 8 to 99");
    CHECK_THROWS_WITH(parse_options("speed=1"), doctest::Contains("an option is 'speed', expected seed,"));
    CHECK_THROWS_WITH(parse_options("seed"), "an option is 'seed', expected NAME=VALUE");
}

TEST_CASE("code runs on its architecture and on later ones, machine code on those of its major version") {
    const auto runs = [](const char* capability, const char* target, bool is_machine_code) {
        return parse_options(std::string("capability=") + capability).runs(target, is_machine_code);
    };
    for (const bool is_machine_code : {false, true}) {
        CAPTURE(is_machine_code);
        CHECK(runs("8.0", "sm_80", is_machine_code));
        CHECK(runs("8.9", "sm_86", is_machine_code));
        CHECK(!runs("8.6", "sm_89", is_machine_code));
        CHECK(runs("9.0", "sm_80", is_machine_code) == !is_machine_code);
        CHECK(runs("9.0", "sm_90a", is_machine_code));
        CHECK(!runs("10.0", "sm_90a", is_machine_code));
        CHECK(runs("10.3", "sm_100f", is_machine_code));
        CHECK(!runs("10.3", "sm_100a", is_machine_code));
        CHECK(!runs("12.0", "sm_100f", is_machine_code));
        for (const char* none : {"", "sm_", "sm_x", "sm_80x", "compute_80"}) CHECK(!runs("8.0", none, is_machine_code));
    }
    CHECK(parse_module(kernel_of("")).at(0).target == "sm_90a");
}

TEST_CASE("the driver's stand-in refuses code that its architecture doesn't run") {
    using Load = int(void**, const void*, void*, void**, unsigned, void*, void**, unsigned);
    using Unload = int(void*);
    void* const cuda = dlopen(PTX_TEST_CUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(cuda != nullptr, dlerror());
    auto* const load = reinterpret_cast<Load*>(dlsym(cuda, "cuLibraryLoadData"));
    auto* const unload = reinterpret_cast<Unload*>(dlsym(cuda, "cuLibraryUnload"));
    REQUIRE((load != nullptr && unload != nullptr));
    const auto loads = [&](const std::string& target, bool is_cubin) {
        std::string ptx = kernel_of("");
        ptx.replace(ptx.find("sm_90a"), 6, target);
        void* library = nullptr;
        const std::string code = is_cubin ? file_of(ptx) : ptx;
        const int status = load(&library, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
        if (status == 0) unload(library);
        return status;
    };
    constexpr int kNoBinaryForGpu = 209;
    for (const bool is_cubin : {false, true}) {  // capability 8.0
        CAPTURE(is_cubin);
        CHECK(loads("sm_80", is_cubin) == 0);
        CHECK(loads("sm_86", is_cubin) == kNoBinaryForGpu);
        CHECK(loads("sm_90a", is_cubin) == kNoBinaryForGpu);
    }
}

TEST_CASE("PTX is found in the file that was made of it, and in no other") {
    std::string file = file_of(".version 9.0");
    CHECK(ptx_of(file.data()) == ".version 9.0");
    Elf64_Ehdr header;
    std::memcpy(&header, file.data(), sizeof header);
    CHECK(header.e_machine == 190);
    Elf64_Shdr section;
    std::memcpy(&section, file.data() + header.e_shoff, sizeof section);
    CHECK(file.size() == section.sh_offset + section.sh_size);
    section.sh_type = SHT_PROGBITS;
    std::memcpy(file.data() + header.e_shoff, &section, sizeof section);
    CHECK(ptx_of(file.data()).empty());
}

TEST_CASE("launches keep to what the kernel declares") {
    Bench bench;
    bench.launch.threads = 1056;
    CHECK_THROWS_WITH(bench.run(""), "a block of 1056 threads; bench takes up to 1024");
    CHECK_THROWS_WITH(parse_module(".version 9.0\n.visible .entry none() {\n}\n"),
                      "PTX line 4: the kernel none does not end");
    CHECK_THROWS_WITH(parse_module(".visible .func f() {}"), "PTX line 1: '.func' is not known");
    CHECK_THROWS_WITH(parse_module(".visible .entry f()\n.reqnctapercluster 2\n{ ret; }"),
                      "PTX line 3: '.reqnctapercluster' is not known");
}

}  // namespace
}  // namespace kvjit::ptx
