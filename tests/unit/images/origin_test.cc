// Where an image is from, and what is shown of it: of what runs, else of what would run.
#include <algorithm>

#include "digest.h"
#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

const std::string kSpec = "head_dim=64,group=4";
constexpr auto kStore = KVJIT_PROGRAM_STORE;
constexpr auto kDecode = KVJIT_PROGRAM_DECODE;

/// Kernels over one set of images.
struct Setting {
    explicit Setting(World& world, bool jit = true) : images(std::make_shared<Images>(options_over(world, jit))) {}

    std::shared_ptr<FakeBundle> add_bundle() const {
        auto bundle = std::make_shared<FakeBundle>();
        images->add_bundle(bundle);
        return bundle;
    }
    KernelPtr kernel(const std::string& spec = kSpec) const {
        return *Kernel::make(images, spec_of(spec), two_levels());
    }

    std::shared_ptr<Images> images;
};

KernelImage image_of(const KernelPtr& kernel, std::uint32_t program) {
    const auto all = kernel->images(program);
    REQUIRE(all.has_value());
    REQUIRE(all->size() == 1);
    return all->front();
}

std::string shown(const KernelPtr& kernel, kvjit_stage stage, std::uint32_t program = KVJIT_PROGRAM_STORE) {
    const auto text = kernel->emit(program, stage);
    REQUIRE_MESSAGE(text.has_value(), text.error().message);
    return *text;
}

/// What an image from a store is, whose entry is `entry`.
void check_stored(const KernelPtr& kernel, const Entry& entry) {
    CHECK(shown(kernel, KVJIT_STAGE_SOURCE) == entry.source);
    CHECK(shown(kernel, KVJIT_STAGE_LOG) == entry.log);
    CHECK(shown(kernel, KVJIT_STAGE_OBJECT) == entry.object);
    const std::string identity = image_of(kernel, KVJIT_PROGRAM_STORE).identity;
    CHECK(shown(kernel, KVJIT_STAGE_IDENTITY) ==
          "identity: " + identity + "\nprovenance: source=" + digest_hex(entry.source) + ";the store's maker\n");
}

}  // namespace

TEST_CASE("what nobody has has no origin, and is rendered and compiled to be shown, for nobody else") {
    for (const bool jit : {true, false}) {
        World world;
        const Setting at(world, jit);
        const KernelPtr kernel = at.kernel();
        const KernelImage image = image_of(kernel, KVJIT_PROGRAM_STORE);
        CHECK(!image.origin);
        CHECK(!image.is_loaded);
        CHECK(image.target->text() == best().text());
        CHECK(image.identity == identity_of(kSpec, kStore, best()));
        CHECK(world.compiles == 0);
        CHECK(shown(kernel, KVJIT_STAGE_SOURCE).find("store") != std::string::npos);
        CHECK(shown(kernel, KVJIT_STAGE_OBJECT) == "store for " + best().text());
        CHECK(world.compiles == 1);
        CHECK(at.images->stats().compiles == 0);
        CHECK(world.published == 0);
        CHECK(world.loads == 0);
    }
}

TEST_CASE("what a store would give is shown as it has it, before and after it is loaded, without a compiler") {
    for (const bool in_bundle : {true, false}) {
        CAPTURE(in_bundle);
        World world;
        world.compiler_is_missing = true;
        const Setting at(world, false);
        const auto bundle = at.add_bundle();
        const Entry entry{"the object", "the source", "the log"};
        auto& entries = in_bundle ? bundle->entries : world.entries;
        const std::string identity = identity_of(kSpec, kStore, second());
        entries[identity] = entry;
        const KernelPtr kernel = at.kernel();
        for (const bool loaded : {false, true}) {
            CAPTURE(loaded);
            const KernelImage image = image_of(kernel, KVJIT_PROGRAM_STORE);
            REQUIRE(image.origin);
            CHECK(image.is_loaded == loaded);
            CHECK(image.origin->kind == (in_bundle ? KVJIT_ORIGIN_BUNDLE : KVJIT_ORIGIN_DISK));
            CHECK(image.origin->stored.place == "at " + identity);
            CHECK(image.origin->object_bytes == entry.object.size());
            CHECK(image.target->text() == second().text());
            CHECK(image.identity == identity);
            check_stored(kernel, entry);
            CHECK(world.loads == (loaded ? 1 : 0));
            const kvjit_engine_stats stats = at.images->stats();
            CHECK(stats.bundle_hits + stats.disk_hits == (loaded ? 1 : 0));
            CHECK(stats.memory_hits == 0);
            if (!loaded) REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE).has_value());
        }
        CHECK(world.compiles == 0);
    }
}

TEST_CASE("the image that runs is shown, and not what a store has learned since") {
    World world;
    const Setting at(world);
    const KernelPtr kernel = at.kernel();
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE).has_value());
    put(*at.add_bundle(), kSpec, kStore, best());
    const KernelImage image = image_of(kernel, KVJIT_PROGRAM_STORE);
    CHECK(image.origin->kind == KVJIT_ORIGIN_COMPILED);
    CHECK(image.origin->stored.place.empty());
    CHECK(shown(kernel, KVJIT_STAGE_OBJECT) == "store for " + best().text());
}

TEST_CASE("an image that kernels share has the origin that it was loaded from first") {
    World world;
    const Setting at(world);
    const KernelPtr one = at.kernel(), other = at.kernel();
    REQUIRE(one->prepare(KVJIT_PROGRAM_STORE).has_value());
    const auto bundle = at.add_bundle();
    put(*bundle, kSpec, kStore, best());
    CHECK(image_of(other, KVJIT_PROGRAM_STORE).origin->kind == KVJIT_ORIGIN_COMPILED);
    CHECK(!image_of(other, KVJIT_PROGRAM_STORE).is_loaded);
    REQUIRE(other->prepare(KVJIT_PROGRAM_STORE).has_value());
    CHECK(image_of(other, KVJIT_PROGRAM_STORE).is_loaded);
    CHECK(image_of(other, KVJIT_PROGRAM_STORE).origin == image_of(one, KVJIT_PROGRAM_STORE).origin);
    CHECK(bundle->asked.empty());
}

TEST_CASE("an image that went has no say in where the next one is from") {
    World world;
    const Setting at(world);
    REQUIRE(at.kernel()->prepare(KVJIT_PROGRAM_STORE).has_value());
    REQUIRE(world.images == 0);
    const KernelPtr kernel = at.kernel();
    CHECK(image_of(kernel, KVJIT_PROGRAM_STORE).origin->kind == KVJIT_ORIGIN_DISK);
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE).has_value());
    CHECK(image_of(kernel, KVJIT_PROGRAM_STORE).origin->kind == KVJIT_ORIGIN_DISK);
}

TEST_CASE("programs that nobody has are told for the target that the others settle, as they would be made") {
    World world;
    const Setting at(world);
    put(*at.add_bundle(), kSpec, kDecode, second());
    const KernelPtr kernel = at.kernel();
    const auto before = kernel->images(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE);
    REQUIRE(before.has_value());
    REQUIRE(before->size() == 2);
    for (const KernelImage& image : *before) CHECK(image.target->text() == second().text());
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE).has_value());
    const auto after = kernel->images(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE);
    for (std::size_t i = 0; i < 2; ++i) CHECK((*after)[i].identity == (*before)[i].identity);
    CHECK((*after)[0].origin->kind == KVJIT_ORIGIN_COMPILED);
    CHECK((*after)[1].origin->kind == KVJIT_ORIGIN_BUNDLE);
}

TEST_CASE("a store's entry that is another one, or gone, is said; only a source that renders the same is shown") {
    World world;
    const Setting at(world, false);
    const auto bundle = at.add_bundle();
    const KernelPtr kernel = at.kernel();
    const std::string rendered = shown(kernel, KVJIT_STAGE_SOURCE);
    Entry& entry = bundle->entries[identity_of(kSpec, kStore, best())];
    entry = {"the object", rendered, "the log"};
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE).has_value());
    entry = {"another object", "another source", "another log"};
    for (const kvjit_stage stage : {KVJIT_STAGE_IDENTITY, KVJIT_STAGE_LOG, KVJIT_STAGE_OBJECT}) {
        const auto text = kernel->emit(KVJIT_PROGRAM_STORE, stage);
        REQUIRE(!text.has_value());
        CHECK(text.error().status == KVJIT_BAD_FILE);
        CHECK(text.error().message.ends_with(" changed"));
    }
    CHECK(shown(kernel, KVJIT_STAGE_SOURCE) == rendered);
    bundle->entries.clear();
    CHECK(kernel->emit(KVJIT_PROGRAM_STORE, KVJIT_STAGE_LOG).error().status == KVJIT_NOT_FOUND);
}

TEST_CASE("a source that can't be read again, and that templates don't give, is not shown") {
    World world;
    const Setting at(world, false);
    const auto bundle = at.add_bundle();
    const std::string identity = identity_of(kSpec, kStore, best());
    bundle->entries[identity] = {"the object", "a source of other templates", ""};
    const KernelPtr kernel = at.kernel();
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE).has_value());
    CHECK(shown(kernel, KVJIT_STAGE_SOURCE) == "a source of other templates");
    bundle->entries.clear();
    const auto gone = kernel->emit(KVJIT_PROGRAM_STORE, KVJIT_STAGE_SOURCE);
    REQUIRE(!gone.has_value());
    CHECK(gone.error().status == KVJIT_NOT_FOUND);
    CHECK(gone.error().message == "at " + identity + " is gone; today's templates give another source");
}

TEST_CASE("of what was compiled here the log is kept, the object made again, and both sources compared") {
    World world;
    world.log = "a remark";
    std::string templates = "// one\n";
    ImagesOptions options = options_over(world);
    options.disk = nullptr;
    options.templates.read = [&](std::string_view) { return gen::Result<std::string>(templates); };
    const KernelPtr kernel = *Kernel::make(std::make_shared<Images>(std::move(options)), spec_of(kSpec), two_levels());
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE).has_value());
    CHECK(world.compiles == 1);
    world.log = "another remark";
    CHECK(shown(kernel, KVJIT_STAGE_LOG) == "a remark");
    CHECK(world.compiles == 1);
    CHECK(shown(kernel, KVJIT_STAGE_OBJECT) == "store for " + best().text());
    CHECK(world.compiles == 2);
    const std::string source = shown(kernel, KVJIT_STAGE_SOURCE), identity = shown(kernel, KVJIT_STAGE_IDENTITY);
    CHECK(identity.find(digest_hex(source) + ";fake compiler\n") != std::string::npos);
    templates = "// two\n";
    for (const kvjit_stage stage : {KVJIT_STAGE_SOURCE, KVJIT_STAGE_ASM, KVJIT_STAGE_OBJECT}) {
        const auto text = kernel->emit(KVJIT_PROGRAM_STORE, stage);
        REQUIRE(!text.has_value());
        CHECK(text.error().status == KVJIT_NOT_FOUND);
        CHECK(text.error().message == "no store has the source of the image; today's templates give another source");
    }
    CHECK(shown(kernel, KVJIT_STAGE_IDENTITY) == identity);
    CHECK(shown(kernel, KVJIT_STAGE_LOG) == "a remark");
    templates = "// one\n";
    world.object_end = ", other bytes";
    CHECK(kernel->emit(KVJIT_PROGRAM_STORE, KVJIT_STAGE_OBJECT).error().status == KVJIT_INTERNAL);
}

TEST_CASE("IR and assembly are compiled of the image's source, for its target") {
    World world;
    const Setting at(world);
    const auto bundle = at.add_bundle();
    bundle->entries[identity_of(kSpec, kStore, second())] = {"object", "the bundle's source", ""};
    const KernelPtr kernel = at.kernel();
    CHECK(shown(kernel, KVJIT_STAGE_ASM) == "store for " + second().text());
    CHECK(world.sources.back() == "the bundle's source");
}

TEST_CASE("objects are shown one at a time") {
    World world;
    const Setting at(world);
    const auto both = at.kernel()->emit(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE, KVJIT_STAGE_OBJECT);
    REQUIRE(!both.has_value());
    CHECK(both.error().status == KVJIT_BAD_ARGUMENT);
    CHECK(both.error().argument == "programs");
    CHECK(both.error().value == (KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE));
    CHECK(world.compiles == 0);
    CHECK(at.kernel("op=Merge")->emit(KVJIT_ALL_PROGRAMS, KVJIT_STAGE_OBJECT).has_value());
}

TEST_CASE("without compiling, a store that can't be asked keeps anybody from saying what would run") {
    World world;
    world.failure = "the disk is off";
    CHECK(Setting(world, false).kernel()->images(KVJIT_PROGRAM_STORE).error().status == KVJIT_BAD_FILE);
    CHECK(!image_of(Setting(world).kernel(), KVJIT_PROGRAM_STORE).origin);
}
