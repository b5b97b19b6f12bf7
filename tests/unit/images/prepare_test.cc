// The kernels of many specs at once: parallel, with progress, failures kept apart.
#include "prepare.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <stdexcept>

#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

std::vector<gen::KernelSpec> merges(std::initializer_list<int> sizes) {
    std::vector<gen::KernelSpec> specs;
    for (const int size : sizes) specs.push_back(spec_of("op=Merge,head_dim=" + std::to_string(size)));
    return specs;
}

/// Not what any spec may be: the engine refuses it.
gen::KernelSpec illegal() {
    gen::KernelSpec spec = gen::default_spec();
    spec.head_dim = 100;
    return spec;
}

/// What progress said.
struct Heard {
    std::vector<std::size_t> done;
    std::vector<std::string> specs, failed;

    PrepareOptions options(std::int32_t threads) {
        return {KVJIT_ALL_PROGRAMS, threads,
                [this](std::size_t count, const gen::KernelSpec& spec, const gen::Error* failure) {
                    done.push_back(count);
                    specs.push_back(gen::print_spec(spec));
                    if (failure != nullptr) failed.push_back(specs.back() + ": " + failure->message);
                }};
    }
};

}  // namespace

TEST_CASE("all programs of all specs are ready afterwards, and progress counts the specs") {
    World world;
    Engine engine({options_over(world), 8});
    std::vector<gen::KernelSpec> specs = merges({64, 128});
    specs.push_back(spec_of("head_dim=64"));
    for (const std::int32_t threads : {1, 3, 0}) {
        CAPTURE(threads);
        Heard heard;
        REQUIRE(prepare_all(engine, specs, two_levels(), heard.options(threads)).has_value());
        CHECK(heard.done == std::vector<std::size_t>{1, 2, 3});
        CHECK(heard.failed.empty());
        std::ranges::sort(heard.specs);
        CHECK(heard.specs ==
              std::vector<std::string>{"op=Merge", "op=Merge,head_dim=64", "op=MultiHeadCacheAttention,head_dim=64"});
        CHECK(world.compiles.load() == 2 + 4);
    }
    CHECK(world.images.load() == 6);
    CHECK(engine.trim() == 3);
}

TEST_CASE("programs that specs share compile once, also where they are asked for at once") {
    World world;
    Engine engine({options_over(world), 1000});
    std::vector<gen::KernelSpec> specs;
    for (const char* layout : {"TL2HD", "LT2HD", "L2THD", "T2LHD", "TLH2D", "LTH2D"}) {
        specs.push_back(spec_of(std::string("head_dim=64,layout=") + layout));  // heads are neighbours in all of them
    }
    REQUIRE(prepare_all(engine, specs, two_levels(), {KVJIT_ALL_PROGRAMS, 4, nullptr}).has_value());
    CHECK(world.compiles == 4);
}

TEST_CASE("what a bundle has decides on a kernel's target before anything is compiled") {
    const std::string attention = "head_dim=64";
    const gen::Target& lesser = two_levels()[1];
    for (const std::int32_t threads : {1, 2, 4}) {
        CAPTURE(threads);
        World world;
        Engine engine({options_over(world), 8});
        const auto bundle = std::make_shared<FakeBundle>();
        for (const auto program : {KVJIT_PROGRAM_DECODE, KVJIT_PROGRAM_PREFILL, KVJIT_PROGRAM_MERGE}) {
            put(*bundle, attention, program, lesser);
        }
        engine.add_bundle(bundle);
        const std::vector<gen::KernelSpec> specs{spec_of(attention)};
        REQUIRE(prepare_all(engine, specs, two_levels(), {KVJIT_ALL_PROGRAMS, threads, nullptr}).has_value());
        CHECK(world.compiles == 1);
        CHECK(world.warnings.empty());
        CHECK(world.entries.contains(identity_of(attention, KVJIT_PROGRAM_STORE, lesser)));
    }
}

TEST_CASE("only the programs that are asked for are prepared, and an op that has none is ready") {
    World world;
    Engine engine({options_over(world), 8});
    std::vector<gen::KernelSpec> specs = merges({64});
    specs.push_back(spec_of("head_dim=64"));
    Heard heard;
    PrepareOptions options = heard.options(2);
    options.programs = KVJIT_PROGRAM_STORE;
    REQUIRE(prepare_all(engine, specs, two_levels(), options).has_value());
    CHECK(world.compiles == 1);
    CHECK(heard.done == std::vector<std::size_t>{1, 2});
    CHECK(heard.specs[0] == "op=Merge,head_dim=64");
    options.programs = 128;
    CHECK(prepare_all(engine, specs, two_levels(), options).error().argument == "programs");
    CHECK(prepare_all(engine, {}, two_levels(), {}).has_value());
}

TEST_CASE("a failure stops nobody; the first by the order of specs is the error, with their number") {
    World world;
    Engine engine({options_over(world), 8});
    std::vector<gen::KernelSpec> specs = merges({64, 72, 80, 88});
    specs.insert(specs.begin() + 3, illegal());
    world.while_compiling = [&] { world.source_is_bad = world.compiles == 2; };  // 72
    Heard heard;
    const gen::Result<void> done = prepare_all(engine, specs, two_levels(), heard.options(1));
    REQUIRE(!done);
    CHECK(done.error().status == KVJIT_COMPILE_FAILED);
    CHECK(done.error().argument == "specs[1]");
    CHECK(done.error().value == 2);
    CHECK(done.error().message == "2 of 5 specs can't be prepared, specs[1] first (op=Merge,head_dim=72): it is bad");
    CHECK(heard.done == std::vector<std::size_t>{1, 2, 3, 4, 5});
    REQUIRE(heard.failed.size() == 2);
    CHECK(heard.failed[0].starts_with("op=MultiHeadCacheAttention,head_dim=100: head_dim is 100; "));
    CHECK(heard.failed[1] == "op=Merge,head_dim=72: it is bad");
    CHECK(world.images == 3);
}

TEST_CASE("as many threads compile at once as are asked for, not more") {
    for (const int threads : {1, 3}) {
        CAPTURE(threads);
        World world;
        std::mutex mutex;
        std::condition_variable changed;
        int now = 0, most = 0;
        world.while_compiling = [&] {
            std::unique_lock lock(mutex);
            most = std::max(most, ++now);
            changed.notify_all();
            // Others get the time to be too many; where they are too few, the test ends all the same.
            changed.wait_for(lock, std::chrono::seconds(most < threads ? 20 : 0), [&] { return most >= threads; });
            --now;
        };
        Engine engine({options_over(world), 8});
        std::vector<gen::KernelSpec> specs = merges({64, 72, 80, 88});
        specs.push_back(spec_of("head_dim=64"));
        REQUIRE(prepare_all(engine, specs, two_levels(), {KVJIT_ALL_PROGRAMS, threads, nullptr}).has_value());
        CHECK(most == threads);
    }
}

TEST_CASE("what progress throws comes out, from whichever thread") {
    World world;
    Engine engine({options_over(world), 8});
    const PrepareOptions options{KVJIT_ALL_PROGRAMS, 3, [](std::size_t, const gen::KernelSpec&, const gen::Error*) {
                                     throw std::runtime_error("enough");
                                 }};
    const auto specs = merges({64, 72, 80, 88});
    CHECK_THROWS_AS((void)prepare_all(engine, specs, two_levels(), options), std::runtime_error);
}
