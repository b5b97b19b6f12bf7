// kvjit.hpp: ownership and errors.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <string>

#include "kvjit/kvjit.hpp"

TEST_CASE("specs are plain values with a text") {
    kvjit::KernelSpec spec;
    spec.head_dim = 64;
    spec.set_layout("L2HTD");
    CHECK(*spec.text() == "op=MultiHeadCacheAttention,head_dim=64,layout=L2HTD");
    CHECK(kvjit::KernelSpec::parse("head_dim=64")->head_dim == 64);
    const auto refused = kvjit::KernelSpec::parse("head_dim=65");
    REQUIRE(!refused);
    CHECK(refused.error().status() == KVJIT_BAD_SPEC);
    CHECK(refused.error().argument() == std::string("head_dim"));
    spec.set_layout("NTL2HDTTTT");
    CHECK(spec.text().error().argument() == std::string("layout"));
}

TEST_CASE("kernels outlive the engine that made them") {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    auto engine = kvjit::Engine::create(options);
    REQUIRE(engine);
    auto kernel = engine->kernel(kvjit::KernelSpec());
    REQUIRE(kernel);
    const kvjit::Kernel copy = *kernel;
    *engine = *kvjit::Engine::create(options);
    const auto identity = copy.emit(KVJIT_STAGE_IDENTITY, KVJIT_PROGRAM_STORE);
    REQUIRE(identity);
    CHECK(identity->rfind("identity: store;variant=simd;", 0) == 0);
}

TEST_CASE("an explanation is told also where there is no kernel") {
    const auto engine = kvjit::Engine::create();
    const auto target = kvjit::Target::cuda("sm_90a");
    kvjit::KernelSpec spec = *kvjit::KernelSpec::parse("op=Merge,head_dim=64");
    std::string text = "before";
    CHECK(engine->explain(spec, *target, text));
    CHECK(text == "merge:\nwarps (cuda/merge.cu) serves\n");
    spec.head_dim = 512;
    const auto refused = engine->explain(spec, *target, text, KVJIT_PROGRAM_MERGE);
    REQUIRE(!refused);
    CHECK(refused.error().status() == KVJIT_BAD_SPEC);
    CHECK(refused.error().limit() == 256);
    CHECK(text == "merge:\nwarps (cuda/merge.cu) declines: head_dim is 512; CUDA kernels take at most 256\n");
    CHECK(engine->kernel(spec, *target).error().message() == std::string(refused.error().message()));
}

TEST_CASE("identities are compared in words") {
    const std::string identity = "merge;variant=simd;revision=1;abi=1;x86_64-unknown-linux-gnu:x86-64-v3";
    CHECK(*kvjit::diff_identities(identity, identity) == "merge: nothing\n");
    CHECK(kvjit::diff_identities(identity, "merge").error().argument() == std::string("after"));
}

TEST_CASE("a target's text has its level and what there is beside it") {
    const auto host = kvjit::Target::host();
    REQUIRE(host);
    CHECK(host->text().rfind("x86_64-unknown-linux-gnu:x86-64", 0) == 0);
    CHECK(kvjit::Target::cpu("x86-64-v3+avxvnni")->text() == "x86_64-unknown-linux-gnu:x86-64-v3+avxvnni");
    CHECK(kvjit::Target::cpu("z80").error().status() == KVJIT_BAD_TARGET);
}

TEST_CASE("structs of another size are refused, shorter ones of an older header are not") {
    kvjit::Engine engine = *kvjit::Engine::create();
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    spec.struct_size += 4;
    CHECK(engine.kernel(spec).error().argument() == std::string("spec.struct_size"));
    spec.struct_size = 0;
    CHECK(engine.kernel(spec).error().status() == KVJIT_BAD_ARGUMENT);
    spec.struct_size = offsetof(kvjit_spec, layout);
    CHECK(engine.kernel(spec));
}
