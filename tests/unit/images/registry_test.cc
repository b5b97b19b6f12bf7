// The engine's registry: one kernel for a spec and target while anybody may ask for it.
#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

std::shared_ptr<Engine> engine_over(World& world, std::size_t max_idle) {
    return std::make_shared<Engine>(EngineOptions{options_over(world), max_idle});
}

gen::KernelSpec spec_with(int head_dim) {
    return spec_of("op=Merge,head_dim=" + std::to_string(head_dim));
}

}  // namespace

TEST_CASE("asking again gives the same kernel; another target list another one") {
    World world;
    const auto engine = engine_over(world, 8);
    const KernelPtr kernel = *engine->kernel(spec_with(64), two_levels());
    CHECK(*engine->kernel(spec_with(64), two_levels()) == kernel);
    CHECK(*engine->kernel(spec_with(128), two_levels()) != kernel);
    const gen::TargetList other = {two_levels()[1]};
    CHECK(*engine->kernel(spec_with(64), other) != kernel);
}

TEST_CASE("an idle kernel stays with its images until it is trimmed; a held one stays") {
    World world;
    const auto engine = engine_over(world, 8);
    const KernelPtr held = *engine->kernel(spec_with(64), two_levels());
    REQUIRE(held->prepare(KVJIT_PROGRAM_MERGE).has_value());
    REQUIRE((*engine->kernel(spec_with(128), two_levels()))->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(world.images == 2);
    CHECK(engine->trim() == 1);
    CHECK(world.images == 1);
    CHECK(engine->trim() == 0);
    CHECK(*engine->kernel(spec_with(64), two_levels()) == held);
    CHECK(world.compiles == 2);
}

TEST_CASE("more idle kernels than the limit are dropped, those first that nobody asked for again") {
    World world;
    const auto engine = engine_over(world, 2);
    for (const int head_dim : {64, 128, 64}) {
        REQUIRE((*engine->kernel(spec_with(head_dim), two_levels()))->prepare(KVJIT_PROGRAM_MERGE).has_value());
    }
    const KernelPtr third = *engine->kernel(spec_with(96), two_levels());  // held: counts for nothing
    REQUIRE((*engine->kernel(spec_with(256), two_levels()))->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(world.images == 3);  // 256 is held while room is made
    (*engine->kernel(spec_with(512), two_levels())).reset();
    CHECK(world.images == 2);
    REQUIRE((*engine->kernel(spec_with(64), two_levels()))->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(world.compiles == 3);  // 64 was asked for twice: it is still there
}

TEST_CASE("kernels and their images outlive the engine") {
    World world;
    auto engine = engine_over(world, 8);
    KernelPtr kernel = *engine->kernel(spec_with(64), two_levels());
    engine.reset();
    CHECK(kernel->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(world.images == 1);
    kernel.reset();
    CHECK(world.images == 0);
}
