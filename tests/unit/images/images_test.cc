// Where an image comes from, and what is asked on the way.
#include <thread>

#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

/// What the cache holds for Merge on the target is an object that doesn't load.
void put_bad(World& world, const gen::Target& target, kvjit_status status) {
    put(world, "op=Merge", KVJIT_PROGRAM_MERGE, target);
    const std::string object = "bad object for " + target.name();
    world.entries[gen::identity_text(gen::lower(spec_of("op=Merge"), target)->front(), target)].object = object;
    world.refused_objects[object] = status;
}

}  // namespace

TEST_CASE("what nobody has is nothing to find, and made once") {
    World world;
    Images images(options_over(world));
    const BothLevels merge;
    CHECK(!images.find(merge.candidates)->has_value());
    const auto made = images.make(merge.candidates[0]);
    REQUIRE(made.has_value());
    CHECK(world.compiles == 1);
    CHECK(world.published == 1);
    CHECK((*images.find(merge.candidates))->image == *made);
    CHECK(*images.make(merge.candidates[0]) == *made);
    CHECK(world.loads == 1);
    CHECK(images.stats().memory_hits == 2);
}

TEST_CASE("with a compiler the cache is asked for the best candidate alone; without, for all, best first") {
    World world;
    put(world, "op=Merge", KVJIT_PROGRAM_MERGE, second());
    const BothLevels merge;
    CHECK(!Images(options_over(world)).find(merge.candidates)->has_value());
    CHECK(world.asked.back().size() == 1);
    Images without(options_over(world, false));
    const auto found = without.find(merge.candidates);
    REQUIRE(found->has_value());
    CHECK((*found)->which == 1);
    CHECK(world.asked.back().size() == 2);
    CHECK(is_for(world.asked.back()[0], best()));
    put(world, "op=Merge", KVJIT_PROGRAM_MERGE, best());
    CHECK((*without.find(merge.candidates))->which == 0);
}

TEST_CASE("what is in memory for a lesser target doesn't come before what a store has for the best") {
    World world;
    put(world, "op=Merge", KVJIT_PROGRAM_MERGE, second());
    Images images(options_over(world, false));
    const BothLevels merge;
    const auto lesser = *images.find(merge.candidates);
    REQUIRE(lesser->which == 1);
    const auto again = *images.find(merge.candidates);
    CHECK(again->image == lesser->image);  // the first one is kept
    CHECK(world.loads == 1);               // though the store is asked each time
    CHECK(world.images == 1);
}

TEST_CASE("a memory hit names no compiler and renders nothing") {
    World world;
    ImagesOptions options = options_over(world);
    int rendered = 0;
    options.templates.read = [&](std::string_view) {
        ++rendered;
        return gen::Result<std::string>("\n");
    };
    options.disk = nullptr;
    Images images(std::move(options));
    const BothLevels merge;
    const auto made = images.make(merge.candidates[0]);
    const int before = rendered;
    REQUIRE(made.has_value());
    CHECK(images.find(merge.candidates)->has_value());
    CHECK(rendered == before);
    CHECK(world.identities == 0);  // no store wanted to know
}

TEST_CASE("images that nobody holds are gone") {
    World world;
    Images images(options_over(world));
    const BothLevels merge;
    auto made = images.make(merge.candidates[0]);
    REQUIRE(made.has_value());
    CHECK(world.images == 1);
    *made = nullptr;
    CHECK(world.images == 0);
    images.sweep();
    CHECK(images.find(merge.candidates)->has_value());  // read again
    CHECK(world.compiles == 1);
}

TEST_CASE("one compile an identity, however many threads ask") {
    World world;
    world.while_compiling = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    Images images(options_over(world));
    const BothLevels merge;
    std::vector<ImagePtr> got(8);
    {
        std::vector<std::jthread> threads;
        for (ImagePtr& image : got) {
            threads.emplace_back([&] { image = *images.make(merge.candidates[0]); });
        }
    }
    for (const ImagePtr& image : got) CHECK(image == got[0]);
    CHECK(world.compiles == 1);
}

TEST_CASE("those who waited for a failing compile get its error; who asks later compiles again") {
    World world;
    world.source_is_bad = true;
    Images images(options_over(world));
    const BothLevels merge;
    std::atomic<int> arrived{0}, failed{0};
    world.while_compiling = [&] {
        while (arrived < 4) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // they are at the lock by now, or compile too
    };
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                ++arrived;
                const auto made = images.make(merge.candidates[0]);
                failed += !made && made.error().status == KVJIT_COMPILE_FAILED;
            });
        }
    }
    CHECK(failed == 4);
    CHECK(world.compiles < 4);
    world.while_compiling = nullptr;
    world.source_is_bad = false;
    CHECK(images.make(merge.candidates[0]).has_value());
}

TEST_CASE("without compiling, a miss names the program, and a store that can't say is not a miss") {
    World world;
    Images images(options_over(world, false));
    const BothLevels merge;
    CHECK(!images.find(merge.candidates)->has_value());
    const auto missed = images.make(merge.candidates[0]);
    CHECK(missed.error().status == KVJIT_NOT_FOUND);
    CHECK(missed.error().message.find(gen::identity_text(merge.programs[0], best())) != std::string::npos);
    world.failure = "the disk is on fire";
    const auto failed = images.find(merge.candidates);
    CHECK(failed.error().status == KVJIT_BAD_FILE);
    CHECK(failed.error().message.find("the disk is on fire") != std::string::npos);
    CHECK(world.compiles == 0);
}

TEST_CASE("with a compiler, a store that can't say costs a compile") {
    World world;
    world.failure = "the disk is on fire";
    Images images(options_over(world));
    const BothLevels merge;
    CHECK(!images.find(merge.candidates)->has_value());
    CHECK(images.make(merge.candidates[0]).has_value());
    CHECK(world.compiles == 1);
}

TEST_CASE("where no compiler can be named, any candidate serves, though compiling is on") {
    World world;
    world.compiler_is_missing = true;
    put(world, "op=Merge", KVJIT_PROGRAM_MERGE, second());
    Images images(options_over(world));
    const BothLevels merge;
    const auto found = images.find(merge.candidates);
    REQUIRE(found->has_value());
    CHECK((*found)->which == 1);
}

TEST_CASE("without compiling, what is in memory for a lesser target is better than none") {
    World world;
    put(world, "op=Merge", KVJIT_PROGRAM_MERGE, second());
    Images images(options_over(world, false));
    const BothLevels merge;
    const auto lesser = *images.find(merge.candidates);
    REQUIRE(lesser.has_value());
    world.entries.clear();
    CHECK((*images.find(merge.candidates))->image == lesser->image);
    world.failure = "the disk is on fire";
    CHECK((*images.find(merge.candidates))->image == lesser->image);
}

TEST_CASE("without a compiler, where an object doesn't load the next candidate serves") {
    for (const bool jit : {false, true}) {
        CAPTURE(jit);
        World world;
        world.compiler_is_missing = true;
        put_bad(world, best(), KVJIT_BAD_FILE);
        put(world, "op=Merge", KVJIT_PROGRAM_MERGE, second());
        Images images(options_over(world, jit));
        const BothLevels merge;
        const auto found = images.find(merge.candidates);
        REQUIRE(found.has_value());
        REQUIRE(found->has_value());
        CHECK((*found)->which == 1);
        CHECK(images.stats().disk_hits == 1);
        REQUIRE(world.warnings.size() == 1);
        CHECK(world.warnings[0].find("bad object for x86-64-v3") != std::string::npos);
    }
}

TEST_CASE("without compiling, where no candidate's object loads the error is the best one's") {
    World world;
    put_bad(world, best(), KVJIT_BAD_FILE);
    put_bad(world, second(), KVJIT_BAD_FILE);
    Images images(options_over(world, false));
    const BothLevels merge;
    const auto found = images.find(merge.candidates);
    REQUIRE(!found.has_value());
    CHECK(found.error().status == KVJIT_BAD_FILE);
    CHECK(found.error().message ==
          "at " + identity_of("op=Merge", KVJIT_PROGRAM_MERGE, best()) + ": bad object for x86-64-v3 doesn't load");
    CHECK(world.loads == 2);
}

TEST_CASE("what is missing to load one object would be missing for the next") {
    World world;
    put_bad(world, best(), KVJIT_OUT_OF_MEMORY);
    put(world, "op=Merge", KVJIT_PROGRAM_MERGE, second());
    Images images(options_over(world, false));
    const BothLevels merge;
    const auto found = images.find(merge.candidates);
    REQUIRE(!found.has_value());
    CHECK(found.error().status == KVJIT_OUT_OF_MEMORY);
    CHECK(world.loads == 1);
}

TEST_CASE("with a compiler, an object that doesn't load costs a compile") {
    World world;
    put_bad(world, best(), KVJIT_BAD_FILE);
    Images images(options_over(world));
    const BothLevels merge;
    CHECK(!images.find(merge.candidates)->has_value());
    CHECK(images.make(merge.candidates[0]).has_value());
    CHECK(world.compiles == 1);
}
