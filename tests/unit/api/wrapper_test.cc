// kvjit.hpp: ownership and errors.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kvjit/blocks.hpp"
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

TEST_CASE("a layout that is too long is refused, though its first letters are one") {
    kvjit::KernelSpec spec =
        kvjit::KernelSpec::parse("op=KeyValueCache,cache_mode=block_table,page_size=1024,layout=NTL2HDt1024d128")
            .value();
    CHECK(spec.set_layout("NTL2HDt1024d128").text());
    const auto refused = spec.set_layout("NTL2HDt1024d1280").text();
    REQUIRE(!refused);
    CHECK(refused.error().argument() == std::string("layout"));
    CHECK(refused.error().value() == 16);
    CHECK(refused.error().limit() == 15);
    CHECK(!spec.set_layout("NTL2HDt1024d128000000000").text());
}

TEST_CASE("a text that a NUL would end early is refused") {
    using namespace std::string_literals;
    const std::string spec = "head_dim=64\0,group=4"s, target = "x86-64\0-v3"s, path = "\0"s;
    const kvjit::Engine engine = kvjit::Engine::create().value();
    const auto expect = [](const kvjit::Error& error, const char* argument, std::int64_t value, std::int64_t limit) {
        CHECK(error.status() == KVJIT_BAD_ARGUMENT);
        CHECK(error.argument() == std::string(argument));
        CHECK(error.value() == value);
        CHECK(error.limit() == limit);
    };
    expect(kvjit::KernelSpec::parse(spec).error(), "text", 11, 20);
    expect(kvjit::SpecList::parse(spec).error(), "text", 11, 20);
    expect(kvjit::diff_identities("merge", spec).error(), "after", 11, 20);
    expect(kvjit::Target::cpu(target).error(), "name", 6, 10);
    expect(engine.add_bundle(path).error(), "path", 0, 1);
}

TEST_CASE("a list's lines become specs, and what they leave out has a reason") {
    const auto list = kvjit::SpecList::parse(
        "op={KeyValueCache,MultiHeadCacheAttention} head_dim={64,128} quant_bit={0,8} quant_group={8,32}\n"
        "layout={L2HTD,N2LTHD} cache_mode={offset,block_table} # two of four\n");
    REQUIRE(list);
    REQUIRE(list->specs.size() == 14);
    CHECK(*list->specs[1].text() == "op=KeyValueCache,head_dim=64,quant_bit=8");
    CHECK(*list->specs[13].text() == "op=MultiHeadCacheAttention,cache_mode=block_table,layout=N2LTHD");
    REQUIRE(list->left_out.size() == 2);
    CHECK(list->left_out[1].line == 2);
    CHECK(list->left_out[1].combination == "layout=N2LTHD,cache_mode=offset");
    CHECK(list->left_out[1].reason.find("axis N") != std::string::npos);
    const auto refused = kvjit::SpecList::parse("group={1..4}", 3);
    REQUIRE(!refused);
    CHECK(refused.error().argument() == std::string("max_combinations"));
    CHECK(refused.error().limit() == 3);
}

TEST_CASE("options begin with their defaults, those that aren't 0 among them") {
    CHECK(kvjit::PlanOptions().spin_us == -1);
    CHECK(kvjit::BlocksOptions().spin_us == -1);
    CHECK(kvjit::EngineOptions().jit == -1);
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

TEST_CASE("a const engine does all that an engine does") {
    const kvjit::Engine engine = kvjit::Engine::create().value();
    engine.seal();
    engine.trim();
    const char byte = 0;
    CHECK(engine.add_bundle(&byte, 1).error().status() == KVJIT_BAD_FILE);
    CHECK(engine.add_bundle("").error().status() == KVJIT_BAD_FILE);
}

TEST_CASE("a target that was moved from is not this machine") {
    kvjit::Target target = kvjit::Target::cpu("x86-64").value();
    const kvjit::Target taken = std::move(target);
    const kvjit::KernelSpec spec;
    auto engine = kvjit::Engine::create().value();
    std::string text;
    for (const kvjit::Error& error : {engine.kernel(spec, target).error(), engine.prepare({spec}, target).error(),
                                      engine.explain(spec, target, text).error()}) {
        CHECK(error.status() == KVJIT_BAD_ARGUMENT);
        CHECK(error.argument() == std::string("target"));
    }
    CHECK(engine.kernel(spec, taken));
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

TEST_CASE("the list of programs has each bit once, under the name that its enumerator has") {
    std::map<std::uint32_t, std::string> names;
    const auto take = [](void* to, std::uint32_t program, const char* name) {
        CHECK(static_cast<std::map<std::uint32_t, std::string>*>(to)->emplace(program, name).second);
    };
    kvjit_program_list(take, &names);
    CHECK(names == std::map<std::uint32_t, std::string>{{KVJIT_PROGRAM_STORE, "store"},
                                                        {KVJIT_PROGRAM_LOAD, "load"},
                                                        {KVJIT_PROGRAM_DECODE, "decode"},
                                                        {KVJIT_PROGRAM_PREFILL, "prefill"},
                                                        {KVJIT_PROGRAM_MERGE, "merge"},
                                                        {KVJIT_PROGRAM_CHECK, "check"},
                                                        {KVJIT_PROGRAM_RELAYOUT, "relayout"}});
}

TEST_CASE("the list of targets has names that targets are made by, each once, with an explanation") {
    std::vector<std::string> names;
    const auto take = [](void* to, const char* name, const char* help) {
        static_cast<std::vector<std::string>*>(to)->push_back(name);
        CHECK(help[0] != '\0');
        CHECK(std::string(help).find('\n') == std::string::npos);
    };
    kvjit_target_list(take, &names);
    const auto has = [&](const char* name) { return std::count(names.begin(), names.end(), name) == 1; };
    for (const char* name : {"host", "x86-64", "x86-64-v3", "x86-64-v4-amx", "x86-64-v4-fp16", "cuda", "sm_80", "sm_90",
                             "sm_90a", "sm_100f", "cuda-emulated"}) {
        CHECK_MESSAGE(has(name), name);
    }
    CHECK(!has("sm_80a"));
    CHECK(!has("sm_90f"));
    for (const std::string& name : names) {
        CHECK_MESSAGE(has(name.c_str()), name);
        kvjit_target* target = nullptr;
        kvjit::Error error;
        const kvjit_status status = kvjit_target_create(name.c_str(), &target, error.get());
        const bool lacks_gpu = name == "cuda" && status == KVJIT_CUDA_ERROR;
        CHECK_MESSAGE((status == KVJIT_OK || lacks_gpu), name, ": ", error.message());
        kvjit_target_release(target);
    }
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
