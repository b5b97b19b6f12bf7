// Bundles among the stores: who is asked, in which order, and which target wins.
#include <algorithm>

#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

const std::string kMerge = "op=Merge";
const std::string kAttention = "head_dim=64,group=4";
constexpr auto kKind = KVJIT_PROGRAM_MERGE;

/// Merge on both levels over the fakes, with bundles.
struct Setting {
    explicit Setting(World& world, bool jit = true) : images(std::make_shared<Images>(options_over(world, jit))) {}

    std::shared_ptr<FakeBundle> add_bundle() const {
        auto bundle = std::make_shared<FakeBundle>();
        images->add_bundle(bundle);
        return bundle;
    }
    gen::Result<std::optional<Images::Found>> find() const { return images->find(merge.candidates); }
    KernelPtr kernel(const std::string& spec, const gen::TargetList& targets = two_levels()) const {
        return *Kernel::make(images, spec_of(spec), targets);
    }

    std::shared_ptr<Images> images;
    BothLevels merge;
};

}  // namespace

TEST_CASE("a bundle comes before the disk cache, and names no compiler") {
    World world;
    put(world, kMerge, kKind, best());
    const Setting at(world);
    put(*at.add_bundle(), kMerge, kKind, best());
    const auto found = at.find();
    REQUIRE(found->has_value());
    CHECK((*found)->which == 0);
    CHECK(world.asked.empty());
    CHECK(world.identities == 0);
    CHECK(at.images->stats().bundle_hits == 1);
    CHECK(at.images->stats().disk_hits == 0);
    CHECK(at.images->stats().bundle_seconds > 0);
}

TEST_CASE("what a bundle has for a lesser target comes before a compiler, and before the cache's best") {
    World world;
    put(world, kMerge, kKind, best());
    const Setting at(world);
    put(*at.add_bundle(), kMerge, kKind, second());
    const auto found = at.find();
    REQUIRE(found->has_value());
    CHECK((*found)->which == 1);
    CHECK(world.compiles == 0);
    CHECK(world.asked.empty());
}

TEST_CASE("the best target that any bundle has wins; for one target, the bundle that was added first") {
    World world;
    const Setting at(world);
    const auto first = at.add_bundle(), other = at.add_bundle(), last = at.add_bundle();
    put(*first, kMerge, kKind, second());
    put(*other, kMerge, kKind, best());
    put(*last, kMerge, kKind, best());
    CHECK((*at.find())->which == 0);
    CHECK(first->asked.empty());
    CHECK(other->asked.size() == 1);
    CHECK(last->asked.empty());
}

TEST_CASE("nothing is read of a bundle for what is in memory, of whichever target") {
    for (const gen::Target& target : two_levels()) {
        World world;
        const Setting at(world);
        const auto bundle = at.add_bundle();
        put(*bundle, kMerge, kKind, target);
        const auto one = *at.find(), two = *at.find();
        CHECK(one->image == two->image);
        CHECK(one->which == two->which);
        CHECK(bundle->asked.size() == 1);
        CHECK(world.loads == 1);
    }
}

TEST_CASE("an image of a lesser target that no bundle has doesn't serve where there is a compiler") {
    World world;
    const Setting at(world);
    at.add_bundle();
    const auto lesser = at.images->make(at.merge.candidates[1]);
    REQUIRE(lesser.has_value());
    CHECK(!at.find()->has_value());
    CHECK(at.images->make(at.merge.candidates[0]).has_value());
    CHECK(world.compiles == 2);
}

TEST_CASE("a bundle that is added later serves what is asked for later") {
    World world;
    const Setting at(world, false);
    CHECK(!at.find()->has_value());
    put(*at.add_bundle(), kMerge, kKind, best());
    CHECK(at.find()->has_value());
}

TEST_CASE("a bundle that can't say costs a look at the next store; without any, its reason is the error") {
    World world;
    const Setting at(world, false);
    const auto bad = at.add_bundle(), good = at.add_bundle();
    put(*bad, kMerge, kKind, best());
    bad->failure = "bundle a.kvjb has a damaged entry";
    const auto missed = at.find();
    CHECK(missed.error().status == KVJIT_BAD_FILE);
    CHECK(missed.error().message.find(bad->failure) != std::string::npos);
    put(*good, kMerge, kKind, second());
    CHECK((*at.find())->which == 1);
    World compiling;
    const Setting with(compiling);
    const auto again = with.add_bundle();
    put(*again, kMerge, kKind, best());
    again->failure = bad->failure;
    CHECK(!with.find()->has_value());
    CHECK(with.images->make(with.merge.candidates[0]).has_value());
}

TEST_CASE("an object that can't be loaded is passed over") {
    World world;
    world.refused_objects["bundled object"] = KVJIT_BAD_FILE;
    put(world, kMerge, kKind, best());
    const Setting at(world);
    put(*at.add_bundle(), kMerge, kKind, best());
    CHECK(at.find()->has_value());
    CHECK(at.images->stats().bundle_hits == 0);
    CHECK(at.images->stats().disk_hits == 1);
    REQUIRE(world.warnings.size() == 1);
    CHECK(world.warnings[0] == "a stored object can't be loaded: at " + identity_of(kMerge, kKind, best()) +
                                   ": bundled object doesn't load");
    World alone;
    alone.refused_objects["bundled object"] = KVJIT_BAD_FILE;
    const Setting without(alone, false);
    put(*without.add_bundle(), kMerge, kKind, best());
    CHECK(without.find().error().status == KVJIT_BAD_FILE);
}

TEST_CASE("a kernel's programs are of the bundle's target, also those that are compiled") {
    World world;
    const Setting at(world);
    put(*at.add_bundle(), kAttention, KVJIT_PROGRAM_DECODE, second());
    const KernelPtr kernel = at.kernel(kAttention);
    REQUIRE(kernel->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(world.compiles == 3);
    for (const auto& [identity, entry] : world.entries) CHECK(is_for(identity, second()));
    CHECK(world.warnings.empty());
}

TEST_CASE("targets are mixed where a bundle lacks one, and the log says so") {
    World world;
    const Setting at(world);
    const auto bundle = at.add_bundle();
    put(*bundle, kAttention, KVJIT_PROGRAM_STORE, best());
    put(*bundle, kAttention, KVJIT_PROGRAM_DECODE, second());
    REQUIRE(at.kernel(kAttention)->prepare(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE).has_value());
    CHECK(world.compiles == 0);
    REQUIRE(world.warnings.size() == 1);
    CHECK(world.warnings[0].find("decode is there for " + second().text() + " only") != std::string::npos);
}

TEST_CASE("without compiling, a target counts that this machine's compiler would not know") {
    World world;
    world.known_target = second();
    const Setting at(world, false);
    put(*at.add_bundle(), kMerge, kKind, best());
    const KernelPtr kernel = at.kernel(kMerge);
    CHECK(kernel->target() == best());
    CHECK(kernel->prepare(KVJIT_PROGRAM_MERGE).has_value());
}

TEST_CASE("a bundle is asked for the machine's own target, which the compiler doesn't know") {
    World world;
    world.known_target = second();
    const Setting at(world);
    const auto bundle = at.add_bundle();
    put(*bundle, kMerge, kKind, best());
    put(*bundle, kMerge, kKind, second());
    const KernelPtr kernel = at.kernel(kMerge);
    CHECK(kernel->images(KVJIT_PROGRAM_MERGE)->front().target->text() == best().text());
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(bundle->asked.back() == identity_of(kMerge, kKind, best()));
    CHECK(world.compiles == 0);
    CHECK(kernel->target() == second());
}

TEST_CASE("what is compiled, and looked for in memory and in the cache, is for what the compiler knows of the target") {
    World world;
    world.known_target = second();
    const Setting at(world);
    const KernelPtr kernel = at.kernel(kMerge), other = at.kernel(kMerge);
    CHECK(kernel->images(KVJIT_PROGRAM_MERGE)->front().target->text() == second().text());
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(other->images(KVJIT_PROGRAM_MERGE)->front().origin != nullptr);
    REQUIRE(other->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(world.compiles == 1);
    const std::string made = identity_of(kMerge, kKind, second());
    for (const auto& asked : world.asked) CHECK(asked == std::vector<std::string>{made});
    CHECK(world.entries.size() == 1);
    CHECK(world.entries.contains(made));

    const Setting later(world);
    REQUIRE(later.kernel(kMerge)->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(later.images->stats().disk_hits == 1);
    CHECK(world.compiles == 1);
}

TEST_CASE("a target that isn't among the candidates is one if the compiler makes code of it") {
    World world;
    world.known_target = *gen::named_target("x86-64");
    const Setting at(world);
    const auto bundle = at.add_bundle();
    const KernelPtr kernel = at.kernel(kMerge);
    put(*bundle, kMerge, kKind, *world.known_target);
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_MERGE).has_value());
    CHECK(world.compiles == 0);
    bundle->entries.clear();
    REQUIRE(at.kernel(kAttention)->prepare(KVJIT_PROGRAM_STORE).has_value());
    CHECK(is_for(world.entries.begin()->first, *world.known_target));
}

TEST_CASE("beside a bundle's program of a target that the compiler doesn't know the others are of what it knows") {
    World world;
    world.known_target = second();
    const Setting at(world);
    put(*at.add_bundle(), kAttention, KVJIT_PROGRAM_STORE, best());
    const KernelPtr kernel = at.kernel(kAttention);
    const auto images = kernel->images(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE);
    CHECK(images->front().target->text() == best().text());
    CHECK(images->back().target->text() == second().text());
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE).has_value());
    CHECK(world.compiles == 1);
    CHECK(is_for(world.entries.begin()->first, second()));
    REQUIRE(world.warnings.size() == 1);
    CHECK(world.warnings[0].find("decode is there for " + second().text() + " only") != std::string::npos);
}

TEST_CASE("without compiling, a miss says what to add, and what bundles have instead") {
    World world;
    const Setting at(world, false);
    at.add_bundle()->near = "bundle a.kvjb has it for sm_90a";
    const auto missed = at.kernel(kAttention + ",layout=L2HTD")->prepare(KVJIT_PROGRAM_DECODE);
    REQUIRE(!missed.has_value());
    const gen::Error& error = missed.error();
    CHECK(error.status == KVJIT_NOT_FOUND);
    const std::string identity = identity_of(kAttention + ",layout=L2HTD", KVJIT_PROGRAM_DECODE, best());
    for (const std::string& part :
         {identity, std::string("; bundle a.kvjb has it for sm_90a"),
          "holds the program decode of " + gen::print_spec(spec_of(kAttention + ",layout=L2HTD")) + ", ",
          "; to have it in a bundle for x86-64-v3, add this line to the bundle's specs.txt: " +
              gen::print_spec(spec_of(kAttention + ",layout=L2HTD"))}) {
        CAPTURE(part);
        CHECK_MESSAGE(error.message.find(part) != std::string::npos, error.message);
    }
}

TEST_CASE("of a GPU's target a miss names all, of a CPU's the level") {
    const auto missed = [](const char* target) {
        World world;
        const Setting at(world, false);
        return at.kernel(kMerge, {*gen::named_target(target)})->prepare(KVJIT_ALL_PROGRAMS).error().message;
    };
    CHECK(missed("sm_90a").contains("to have it in a bundle for sm_90a, add this line"));
    CHECK(missed("x86-64-v3+gfni").contains("to have it in a bundle for x86-64-v3, add this line"));
}

TEST_CASE("an entry is made without loading it, for any target, and through the cache") {
    World world;
    const gen::Target gpu = *gen::named_target("sm_90a");
    const gen::Program program = gen::lower(spec_of(kMerge), gpu)->front();
    Images images(options_over(world));
    const auto made = images.entry({&gpu, &program});
    REQUIRE(made.has_value());
    CHECK(made->key.identity == gen::identity_text(program, gpu));
    CHECK(*made->key.maker == "fake compiler");
    CHECK(made->entry.object == "merge for " + gpu.text());
    CHECK(!made->entry.source.empty());
    CHECK(world.published == 1);
    CHECK(images.entry({&gpu, &program})->entry.object == made->entry.object);
    CHECK(world.compiles == 1);
    CHECK(world.loads == 0);
    world.compiler_is_missing = true;
    CHECK(images.entry({&gpu, &program}).error().status == KVJIT_COMPILER_MISSING);
}
