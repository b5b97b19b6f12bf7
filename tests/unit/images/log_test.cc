// What the log says of compiles, images and refusals, and from which level on.
#include "log.h"
#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

constexpr char kSpec[] = "op=Merge,head_dim=64";

struct Said {
    kvjit_log_level level;
    std::string text;

    bool holds(const std::string& part) const { return text.find(part) != std::string::npos; }
};

/// An engine that keeps what it says, from `least` on.
struct Setting {
    Setting(World& world, kvjit_log_level least, bool jit = true) {
        ImagesOptions options = options_over(world, jit);
        const auto keep = [this](kvjit_log_level level, const std::string& text) { said.push_back({level, text}); };
        options.log = {keep, least};
        engine = std::make_shared<Engine>(EngineOptions{std::move(options), 8});
    }
    gen::Result<ImageSet> prepare() {
        return (*engine->kernel(spec_of(kSpec), two_levels()))->prepare(KVJIT_ALL_PROGRAMS);
    }

    std::vector<Said> said;
    std::shared_ptr<Engine> engine;
};

const std::string kAbout = "program=merge spec=\"op=Merge,head_dim=64\" target=x86-64-v3";

}  // namespace

TEST_CASE("a compile is said with why it was needed, its size, and whether it was late") {
    World world;
    Setting at(world, KVJIT_LOG_INFO);
    at.engine->seal();
    REQUIRE(at.prepare().has_value());
    REQUIRE(at.said.size() == 1);
    CHECK(at.said[0].level == KVJIT_LOG_INFO);
    const std::size_t bytes = world.entries.begin()->second.object.size();
    for (const std::string& part :
         {"compiled " + kAbout, std::string("why=\"no entry in the disk cache\" late=yes ms="),
          " bytes=" + std::to_string(bytes) + " image=merge-"}) {
        CAPTURE(part);
        CHECK_MESSAGE(at.said[0].holds(part), at.said[0].text);
    }
}

TEST_CASE("a bundle's entry that nearly serves is why a program is compiled") {
    World world;
    Setting at(world, KVJIT_LOG_INFO);
    auto bundle = std::make_shared<FakeBundle>();
    bundle->near = "a.kvjb has it for sm_90a";
    at.engine->add_bundle(bundle);
    REQUIRE(at.prepare().has_value());
    REQUIRE(at.said.size() == 1);
    CHECK_MESSAGE(at.said[0].holds("why=\"a.kvjb has it for sm_90a; no entry in the disk cache\""), at.said[0].text);
}

TEST_CASE("an image is said with where it is from") {
    World world;
    put(world, kSpec, KVJIT_PROGRAM_MERGE, best());
    std::vector<Said> said;
    ImagesOptions options = options_over(world);
    options.log = {[&](kvjit_log_level level, const std::string& text) { said.push_back({level, text}); },
                   KVJIT_LOG_DEBUG};
    Images images(std::move(options));
    BothLevels merge(kSpec);
    const gen::KernelSpec spec = spec_of(kSpec);
    merge.candidates[0].spec = &spec;
    const auto first = images.find(std::span(merge.candidates).first(1));
    REQUIRE(first.has_value());
    REQUIRE(first->has_value());
    REQUIRE(said.size() == 1);
    CHECK(said[0].level == KVJIT_LOG_DEBUG);
    CHECK_MESSAGE(said[0].holds("took " + kAbout + " from=disk place=\"at "), said[0].text);
    CHECK_MESSAGE(said[0].holds(" bytes=6 image=merge-"), said[0].text);  // "object"
    REQUIRE(images.find(std::span(merge.candidates).first(1)).has_value());
    REQUIRE(said.size() == 2);
    CHECK_MESSAGE(said[1].holds("took " + kAbout + " from=memory image=merge-"), said[1].text);
}

TEST_CASE("a program that can't be had is said with the error") {
    World world;
    world.source_is_bad = true;
    Setting at(world, KVJIT_LOG_INFO);
    REQUIRE(!at.prepare().has_value());
    REQUIRE(at.said.size() == 1);
    CHECK_MESSAGE(at.said[0].holds("refused " + kAbout + " why=\"it is bad\" late=no"), at.said[0].text);

    Setting off(world, KVJIT_LOG_INFO, false);
    REQUIRE(!off.prepare().has_value());
    REQUIRE(off.said.size() == 1);
    CHECK_MESSAGE(off.said[0].holds("why=\"compiling is off"), off.said[0].text);
}

TEST_CASE("a level hears nothing of those below it") {
    for (const auto least : {KVJIT_LOG_WARNING, KVJIT_LOG_INFO}) {
        World world;
        put(world, kSpec, KVJIT_PROGRAM_MERGE, best());
        Setting at(world, least);
        REQUIRE(at.prepare().has_value());
        CHECK(at.said.empty());
    }
    World world;
    Setting at(world, KVJIT_LOG_WARNING);
    REQUIRE(at.prepare().has_value());
    CHECK(at.said.empty());
}

TEST_CASE("two logs hear what each of them takes") {
    std::vector<std::string> one, other;
    const Log first([&](kvjit_log_level, const std::string& text) { one.push_back(text); }, KVJIT_LOG_WARNING);
    const Log second([&](kvjit_log_level, const std::string& text) { other.push_back(text); }, KVJIT_LOG_DEBUG);
    const Log log = both(first, second);
    CHECK(!log.takes(KVJIT_LOG_TRACE));
    log(KVJIT_LOG_TRACE, "trace");
    log(KVJIT_LOG_DEBUG, "debug");
    log(KVJIT_LOG_WARNING, "warning");
    CHECK(one == std::vector<std::string>{"warning"});
    CHECK(other == std::vector<std::string>{"debug", "warning"});
    CHECK(!both({}, {}).takes(KVJIT_LOG_WARNING));
}

TEST_CASE("a line stays a line, and its values can be told apart") {
    CHECK(LogLine("did").add("n", 3).add("a", "x86-64-v4+fma").add("b", "two words").add("c", "").text() ==
          "did n=3 a=x86-64-v4+fma b=\"two words\" c=\"\"");
    CHECK(LogLine("did").add("a", "say \"no\"\nC:\\").text() == "did a=\"say \\\"no\\\"\\nC:\\\\\"");
    CHECK(LogLine("did").add_ms(0.0123456).text() == "did ms=12.346");
}
