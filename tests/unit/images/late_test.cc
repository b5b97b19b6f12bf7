// Compiles of a sealed engine: made, counted, told.
#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

/// An engine that writes down what it is told.
struct Setting {
    explicit Setting(World& world) : options(options_over(world)) {
        options.on_late_compile = [this](const std::string& spec, const std::string& program) {
            told.push_back(spec + " " + program);
        };
        engine = std::make_shared<Engine>(EngineOptions{std::move(options), 8});
    }
    gen::Result<ImageSet> prepare(const std::string& spec, std::uint32_t programs) {
        return (*engine->kernel(spec_of(spec), two_levels()))->prepare(programs);
    }

    ImagesOptions options;
    std::shared_ptr<Engine> engine;
    std::vector<std::string> told;
};

}  // namespace

TEST_CASE("only what is compiled after the seal is late") {
    World world;
    Setting at(world);
    REQUIRE(at.prepare("op=Merge,head_dim=64", KVJIT_ALL_PROGRAMS).has_value());
    CHECK(at.engine->stats().late_compiles == 0);
    at.engine->seal();
    at.engine->seal();
    REQUIRE(at.prepare("op=Merge,head_dim=64", KVJIT_ALL_PROGRAMS).has_value());
    CHECK(at.told.empty());
    REQUIRE(at.prepare("t1=f32,head_dim=64", KVJIT_PROGRAM_DECODE).has_value());
    REQUIRE(at.prepare("op=Merge,head_dim=96", KVJIT_ALL_PROGRAMS).has_value());
    CHECK(at.told == std::vector<std::string>{"op=MultiHeadCacheAttention,head_dim=64,t1=f32 decode",
                                              "op=Merge,head_dim=96 merge"});
    CHECK(at.engine->stats().late_compiles == 2);
    CHECK(at.engine->stats().compiles == 3);
}

TEST_CASE("what a store has is not late") {
    World world;
    put(world, "op=Merge", KVJIT_PROGRAM_MERGE, two_levels()[0]);
    Setting at(world);
    at.engine->seal();
    REQUIRE(at.prepare("op=Merge", KVJIT_ALL_PROGRAMS).has_value());
    CHECK(at.engine->stats().late_compiles == 0);
    CHECK(at.told.empty());
}

TEST_CASE("a late compile that nobody listens to is counted") {
    World world;
    Engine engine(EngineOptions{options_over(world), 8});
    engine.seal();
    REQUIRE((*engine.kernel(spec_of("op=Merge"), two_levels()))->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(engine.stats().late_compiles == 1);
}

TEST_CASE("a compile that fails is no compile, late or not") {
    World world;
    Setting at(world);
    at.engine->seal();
    world.source_is_bad = true;
    CHECK(at.prepare("op=Merge", KVJIT_ALL_PROGRAMS).error().status == KVJIT_COMPILE_FAILED);
    CHECK(at.engine->stats().late_compiles == 0);
    CHECK(at.told.empty());
}
