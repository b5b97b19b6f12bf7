// Programs and their algorithms, as `kvjit inspect` names them.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "child.h"
#include "inspect/programs.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::test {
namespace {

TEST_CASE("--why tells which algorithm serves each program, and why those before it don't") {
    const ChildResult all = run_kvjit({"inspect", "head_dim=64", "t1=f32", "--target", "sm_90a", "--why"});
    CHECK(all.exit_code == 0);
    CHECK(mentions(all.out, "decode:\nmma (cuda/attend_decode_mma.cu) declines: t1 is f32;"));
    CHECK(mentions(all.out, "store:\nwarps (cuda/store.cu) serves\n"));
    CHECK(run_kvjit({"inspect", "head_dim=64", "--target", "x86-64", "--why", "--program", "store"}).out ==
          "store:\nsimd (cpu/store.cc) serves\ncut (cpu/store_cut.cc) is not asked\n");
}

TEST_CASE("--why explains every program also where there is no kernel, and ends with that") {
    const ChildResult all = run_kvjit({"inspect", "head_dim=512", "op=KeyValueCache", "--target", "sm_90a", "--why"});
    CHECK(all.exit_code == 2);
    const std::string declines = "declines: head_dim is 512; CUDA kernels take at most 256\n";
    CHECK(all.out == "check:\nwarps (cuda/check.cu) " + declines + "store:\nwarps (cuda/store.cu) " + declines +
                         "cut (cuda/store_cut.cu) " + declines + "load:\nwarps (cuda/load.cu) " + declines +
                         "cut (cuda/load_cut.cu) " + declines);
    CHECK(all.err ==
          "kvjit: no kernel of this spec exists on sm_90a: KVJIT_BAD_SPEC: head_dim is 512; CUDA kernels take at most "
          "256\n");
    const ChildResult lacking =
        run_kvjit({"inspect", "head_dim=512", "--target", "sm_90a", "--why", "--program", "load"});
    CHECK(lacking.exit_code == 2);
    CHECK(lacking.out.empty());
    CHECK(lacking.err == "kvjit: --program is load; on sm_90a this op has check, decode, prefill, store\n");
}

/// As the library refuses a bit of no program.
std::int64_t bits_of_programs() {
    const auto engine = Engine::create();
    REQUIRE(engine);
    const auto kernel = engine->kernel(KernelSpec());
    REQUIRE(kernel);
    return kernel->prepare(std::uint32_t{1} << 31).error().limit();
}

TEST_CASE("the command has a name for each program") {
    std::uint32_t named = 0;
    for (const auto& [name, programs] : tool::program_names()) named |= name == "all" ? 0 : programs;
    CHECK(named == bits_of_programs());
    CHECK(tool::program_names().at("all") == KVJIT_ALL_PROGRAMS);
}

TEST_CASE("a program is asked for by its name, or by what identities call it") {
    const auto why = [](const char* program) {
        return run_kvjit({"inspect", "head_dim=64", "--target", "x86-64", "--why", "--program", program}).out;
    };
    CHECK(why("decode").starts_with("decode:\n"));
    CHECK(why("attend_decode") == why("decode"));
    CHECK(why("attend_prefill") == why("prefill"));
    CHECK(run_kvjit({"inspect", "head_dim=64", "--program", "attend_"}).exit_code == 2);
}

TEST_CASE("a program that the op lacks is named, and so are those that it has") {
    const ChildResult result = run_kvjit({"inspect", "head_dim=128", "--program", "load"});
    CHECK(result.exit_code == 2);
    CHECK(mentions(result.err, "--program is load;"));
    CHECK(mentions(result.err, "on host this op has decode, merge, prefill, store\n"));
    const ChildResult gpu = run_kvjit({"inspect", "op=KeyValueCache", "--program", "merge", "--target", "sm_90a"});
    CHECK(mentions(gpu.err, "--program is merge;"));
    CHECK(mentions(gpu.err, "on sm_90a this op has check, load, store\n"));
}

TEST_CASE("inspect shows every stage, for any target") {
    for (const std::string stage : {"identity", "source", "ir", "asm"}) {
        const ChildResult result = run_kvjit({"inspect", "op=KeyValueCache", "head_dim=64", "--emit", stage,
                                              "--program", "store", "--target", "x86-64-v3"});
        CAPTURE(stage);
        CAPTURE(result.err);
        CHECK(result.exit_code == 0);
        CHECK(mentions(result.out, "kvjit_store") != (stage == "identity"));
        CHECK(!result.out.empty());
    }
}

}  // namespace
}  // namespace kvjit::test
