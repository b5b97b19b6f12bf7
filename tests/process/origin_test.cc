// What an engine hands out of the images that it runs, wherever they are from, with a compiler and without.
#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "call.h"
#include "digest.h"
#include "disk_cache/entry.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

/// An engine without a compiler, and its kernel of kCallSpec.
struct Serving {
    /// `cache`: "" for none.
    explicit Serving(const std::string& bundle, const std::string& cache = "", const std::string& templates = "") {
        kvjit::EngineOptions options;
        options.cache_dir = cache.c_str();
        options.compiler = "/nowhere/libkvjit_compiler.so";
        options.template_dir = templates.c_str();
        options.jit = 0;
        auto made = kvjit::Engine::create(options);
        REQUIRE(made);
        if (!bundle.empty()) REQUIRE(made->add_bundle(bundle));
        engine.emplace(*std::move(made));
    }
    kvjit::Kernel kernel() const {
        auto found = engine->kernel(*kvjit::KernelSpec::parse(kCallSpec));
        REQUIRE(found);
        return *found;
    }

    std::optional<kvjit::Engine> engine;
};

std::string shown(const kvjit::Kernel& kernel, kvjit_stage stage) {
    const auto text = kernel.emit(stage, KVJIT_PROGRAM_STORE);
    REQUIRE_MESSAGE(text, text.error().message());
    return *text;
}

kvjit::Error refusal(const kvjit::Kernel& kernel, kvjit_stage stage) {
    const auto text = kernel.emit(stage, KVJIT_PROGRAM_STORE);
    REQUIRE(!text);
    return text.error();
}

kvjit::ImageInfo store_of(const kvjit::Kernel& kernel) {
    const auto images = kernel.images(KVJIT_PROGRAM_STORE);
    REQUIRE_MESSAGE(images, images.error().message());
    REQUIRE(images->size() == 1);
    return images->front();
}

/// That all parts are of one image.
void check_whole(const kvjit::Kernel& kernel) {
    const kvjit::ImageInfo image = store_of(kernel);
    const std::string source = shown(kernel, KVJIT_STAGE_SOURCE), object = shown(kernel, KVJIT_STAGE_OBJECT);
    CHECK(holds(source, "// Identity: " + image.identity + "\n"));
    CHECK(holds(source, "kvjit_store"));
    CHECK(
        object.starts_with("\x7f"
                           "ELF"));
    CHECK(static_cast<std::int64_t>(object.size()) == image.object_bytes);
    CHECK(holds(object, "kvjit_store"));
    CHECK(shown(kernel, KVJIT_STAGE_IDENTITY)
              .starts_with("identity: " + image.identity + "\nprovenance: source=" + kvjit::rt::digest_hex(source) +
                           ";"));
    CHECK(shown(kernel, KVJIT_STAGE_LOG).empty());
    CHECK(image.identity.ends_with(";" + image.target));
    CHECK(
        holds(image.identity, "store;variant=" + image.variant + ";revision=" + std::to_string(image.revision) + ";"));
    CHECK(image.name == "store-" + kvjit::rt::digest_hex(image.identity).substr(0, 8));
}

/// Other bytes in each entry, in the file that is open.
void overwrite_entries(const std::string& path) {
    std::string bytes = read_file(path);
    for (std::size_t at = bytes.size() - 1; at > 4096; at -= 512) bytes[at] ^= 1;
    write_file(path, bytes);
}

}  // namespace

TEST_CASE("what a bundle has is shown without a compiler, before it is loaded and afterwards") {
    const Shipped shipped("x86-64,x86-64-v2");
    const Serving serving(shipped.bundle());
    const kvjit::Kernel kernel = serving.kernel();
    for (const bool loaded : {false, true}) {
        CAPTURE(loaded);
        const auto images = kernel.images();
        REQUIRE(images);
        CHECK(images->size() == kCallPrograms);
        for (const kvjit::ImageInfo& image : *images) {
            CHECK(image.origin == KVJIT_ORIGIN_BUNDLE);
            CHECK(image.place == shipped.bundle());
            CHECK(image.is_loaded == loaded);
            CHECK(image.target == "x86_64-unknown-linux-gnu:x86-64-v2");
            const auto object = kernel.emit(KVJIT_STAGE_OBJECT, image.program);
            REQUIRE(object);
            CHECK(holds(read_file(shipped.bundle()), *object));
        }
        check_whole(kernel);
        CHECK(serving.engine->stats().bundle_hits == (loaded ? kCallPrograms : 0));
        REQUIRE(kernel.prepare());
    }
    CHECK(serving.engine->stats().compiles == 0);
}

TEST_CASE("a bundle in memory is told as one") {
    const Shipped shipped;
    const std::string bytes = read_file(shipped.bundle());
    const Serving serving("");
    REQUIRE(serving.engine->get() != nullptr);
    kvjit::Error error;
    REQUIRE(kvjit_engine_add_bundle_memory(serving.engine->get(), bytes.data(), bytes.size(), error.get()) == KVJIT_OK);
    const kvjit::Kernel kernel = serving.kernel();
    REQUIRE(kernel.prepare());
    CHECK(store_of(kernel).origin == KVJIT_ORIGIN_BUNDLE);
    CHECK(store_of(kernel).place == std::to_string(bytes.size()) + " bytes in memory");
    check_whole(kernel);
}

TEST_CASE("of a bundle that is overwritten after loading nothing is shown that the image isn't made of") {
    const Shipped shipped;
    const TemplateFolder templates;
    const Serving serving(shipped.bundle(), "", templates.path());
    const kvjit::Kernel kernel = serving.kernel();
    REQUIRE(kernel.prepare());
    const std::string source = shown(kernel, KVJIT_STAGE_SOURCE);
    overwrite_entries(shipped.bundle());
    for (const kvjit_stage stage : {KVJIT_STAGE_IDENTITY, KVJIT_STAGE_OBJECT, KVJIT_STAGE_LOG}) {
        CAPTURE(stage);
        const kvjit::Error error = refusal(kernel, stage);
        CHECK(error.status() == KVJIT_BAD_FILE);
        CHECK_MESSAGE(holds(error.message(), "bundle " + shipped.bundle() + " has a damaged entry "), error.message());
    }
    CHECK(shown(kernel, KVJIT_STAGE_SOURCE) == source);  // the same, rendered
    CHECK(store_of(kernel).origin == KVJIT_ORIGIN_BUNDLE);
    write_file(templates.path("cpu/store.cc"), kIdleStore);
    const kvjit::Error error = refusal(kernel, KVJIT_STAGE_SOURCE);
    CHECK(error.status() == KVJIT_BAD_FILE);
    CHECK_MESSAGE(holds(error.message(), "; today's templates give another source"), error.message());
}

TEST_CASE("what a bundle was made without is rendered, where it is the same, and is said of logs") {
    const Shipped shipped("host --no-sources");
    const TemplateFolder templates;
    const Serving serving(shipped.bundle(), "", templates.path());
    const kvjit::Kernel kernel = serving.kernel();
    REQUIRE(kernel.prepare());
    CHECK(holds(shown(kernel, KVJIT_STAGE_IDENTITY), kvjit::rt::digest_hex(shown(kernel, KVJIT_STAGE_SOURCE)) + ";"));
    CHECK(shown(kernel, KVJIT_STAGE_OBJECT)
              .starts_with("\x7f"
                           "ELF"));
    const std::string none = "bundle " + shipped.bundle() + " was made without sources and logs";
    CHECK(refusal(kernel, KVJIT_STAGE_LOG).status() == KVJIT_NOT_FOUND);
    CHECK(refusal(kernel, KVJIT_STAGE_LOG).message() == none);
    write_file(templates.path("cpu/store.cc"), kIdleStore);
    CHECK(refusal(kernel, KVJIT_STAGE_SOURCE).message() == none + "; today's templates give another source");
}

TEST_CASE("what was compiled here, and what the disk cache then has of it, is one image") {
    const TemporaryFolder cache;
    kvjit::EngineOptions options;
    options.cache_dir = cache.path().c_str();
    options.jit = 1;
    const auto kernel = call_kernel(options);
    REQUIRE(kernel);
    CHECK(store_of(*kernel).origin == KVJIT_ORIGIN_NONE);
    CHECK(store_of(*kernel).object_bytes == 0);
    CHECK(store_of(*kernel).place.empty());
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_STORE));
    CHECK(store_of(*kernel).origin == KVJIT_ORIGIN_COMPILED);
    CHECK(store_of(*kernel).is_loaded);
    CHECK(store_of(*kernel).place.empty());
    check_whole(*kernel);
    const auto entries = files_in(cache.path(), ".kvjit");
    REQUIRE(entries.size() == 1);
    const std::string bytes = read_file(entries.front());
    CHECK(shown(*kernel, KVJIT_STAGE_OBJECT) == kvjit::rt::decode_entry(bytes)->object);

    const Serving serving("", cache.path());
    const kvjit::Kernel found = serving.kernel();
    REQUIRE(found.prepare(KVJIT_PROGRAM_STORE));
    CHECK(store_of(found).origin == KVJIT_ORIGIN_DISK);
    CHECK(std::filesystem::equivalent(store_of(found).place, entries.front()));
    CHECK(store_of(found).identity == store_of(*kernel).identity);
    check_whole(found);
    for (const kvjit_stage stage : {KVJIT_STAGE_IDENTITY, KVJIT_STAGE_SOURCE, KVJIT_STAGE_OBJECT}) {
        CHECK(shown(found, stage) == shown(*kernel, stage));
    }
    REQUIRE(std::filesystem::remove(entries.front()));
    CHECK(refusal(found, KVJIT_STAGE_OBJECT).status() == KVJIT_NOT_FOUND);
    CHECK(holds(refusal(found, KVJIT_STAGE_OBJECT).message(), " is gone"));
    CHECK(shown(found, KVJIT_STAGE_SOURCE) == shown(*kernel, KVJIT_STAGE_SOURCE));
    CHECK(shown(*kernel, KVJIT_STAGE_OBJECT)
              .starts_with("\x7f"
                           "ELF"));
}
