// A kernel takes all its images from one target, if it can.
#include <algorithm>
#include <thread>

#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

const std::string kSpec = "head_dim=64,group=4";

struct Setting {
    explicit Setting(World& world, bool jit = true)
        : kernel(*Kernel::make(std::make_shared<Images>(options_over(world, jit)), spec_of(kSpec), two_levels())) {}
    KernelPtr kernel;
};

}  // namespace

TEST_CASE("prepare gives the asked images and those from before, and takes none twice") {
    World world;
    const Setting at(world);
    const auto first = at.kernel->prepare(KVJIT_PROGRAM_STORE);
    REQUIRE(first.has_value());
    CHECK((*first)[KVJIT_PROGRAM_STORE] != nullptr);
    CHECK((*first)[KVJIT_PROGRAM_DECODE] == nullptr);
    const auto second = at.kernel->prepare(KVJIT_ALL_PROGRAMS);
    REQUIRE(second.has_value());
    CHECK((*second)[KVJIT_PROGRAM_STORE] == (*first)[KVJIT_PROGRAM_STORE]);
    CHECK(world.compiles == 4);
    CHECK(at.kernel->prepare(128).error().status == KVJIT_BAD_ARGUMENT);
}

TEST_CASE("what a store has for the lesser target makes it the kernel's") {
    World world;
    put(world, kSpec, KVJIT_PROGRAM_STORE, two_levels()[1]);
    put(world, kSpec, KVJIT_PROGRAM_DECODE, two_levels()[0]);
    put(world, kSpec, KVJIT_PROGRAM_DECODE, two_levels()[1]);
    const Setting at(world, false);
    REQUIRE(at.kernel->prepare(KVJIT_PROGRAM_STORE).has_value());
    REQUIRE(at.kernel->prepare(KVJIT_PROGRAM_DECODE).has_value());
    CHECK(is_for(world.asked.back()[0], two_levels()[1]));
    CHECK(is_for(world.asked.back()[1], two_levels()[0]));
    CHECK(world.warnings.empty());
}

TEST_CASE("an image of another target than the kernel's is better than none, and said") {
    World world;
    put(world, kSpec, KVJIT_PROGRAM_STORE, two_levels()[1]);
    put(world, kSpec, KVJIT_PROGRAM_DECODE, two_levels()[0]);
    const Setting at(world, false);
    REQUIRE(at.kernel->prepare(KVJIT_PROGRAM_STORE).has_value());
    CHECK(world.warnings.empty());
    REQUIRE(at.kernel->prepare(KVJIT_PROGRAM_DECODE).has_value());
    REQUIRE(world.warnings.size() == 1);
    CHECK(world.warnings[0].find("decode is there for") != std::string::npos);
    CHECK(world.warnings[0].find(two_levels()[0].text()) != std::string::npos);
    CHECK(world.warnings[0].find(two_levels()[1].text()) != std::string::npos);
}

TEST_CASE("what is compiled is for the best target") {
    World world;
    const Setting at(world);
    REQUIRE(at.kernel->prepare(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE).has_value());
    for (const auto& [identity, entry] : world.entries) CHECK(is_for(identity, two_levels()[0]));
    CHECK(world.entries.size() == 2);
}

TEST_CASE("a search that finds nothing settles nothing") {
    World world;
    const Setting at(world, false);
    CHECK(at.kernel->prepare(KVJIT_PROGRAM_STORE).error().status == KVJIT_NOT_FOUND);
    put(world, kSpec, KVJIT_PROGRAM_STORE, two_levels()[1]);
    put(world, kSpec, KVJIT_PROGRAM_DECODE, two_levels()[1]);
    REQUIRE(at.kernel->prepare(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE).has_value());
    CHECK(world.warnings.empty());
}

TEST_CASE("a target that a store settles while another program is compiled holds for that one, too") {
    World world;
    const gen::Target& lesser = two_levels()[1];
    const auto images = std::make_shared<Images>(options_over(world));
    const auto bundle = std::make_shared<FakeBundle>();
    put(*bundle, kSpec, KVJIT_PROGRAM_STORE, lesser);
    images->add_bundle(bundle);
    const KernelPtr kernel = *Kernel::make(images, spec_of(kSpec), two_levels());
    world.while_compiling = [&] {
        if (world.compiles != 1) return;
        const std::jthread other([&] { CHECK(kernel->prepare(KVJIT_PROGRAM_STORE).has_value()); });
    };
    const auto set = kernel->prepare(KVJIT_PROGRAM_DECODE);
    REQUIRE(set.has_value());
    CHECK((*set)[KVJIT_PROGRAM_STORE] != nullptr);
    CHECK(world.warnings.empty());
    const auto programs = gen::lower(spec_of(kSpec), lesser);
    const Candidate decode{&lesser, &*std::ranges::find(*programs, KVJIT_PROGRAM_DECODE, bit_of)};
    const auto of_lesser = images->find({&decode, 1});
    REQUIRE(of_lesser.has_value());
    REQUIRE(of_lesser->has_value());
    CHECK((*of_lesser)->image == (*set)[KVJIT_PROGRAM_DECODE]);
}

TEST_CASE("an image brings its launch shape") {
    World world;
    const gen::TargetList gpu = {*gen::named_target("sm_80")};
    const auto kernel = *Kernel::make(std::make_shared<Images>(options_over(world)), spec_of(kSpec), gpu);
    const auto set = kernel->prepare(KVJIT_PROGRAM_DECODE);
    REQUIRE(set.has_value());
    const auto programs = gen::lower(spec_of(kSpec), gpu[0]);
    const auto decode = std::ranges::find(*programs, KVJIT_PROGRAM_DECODE, bit_of);
    CHECK((*set)[KVJIT_PROGRAM_DECODE]->launch().shared_bytes == decode->launch.shared_bytes);
    CHECK(decode->launch.shared_bytes > 0);
}
