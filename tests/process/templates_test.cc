// KVJIT_TEMPLATE_DIR: kernel authors' own templates.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "call.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

kvjit::Kernel kernel_with_templates(const std::string& folder) {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.template_dir = folder.c_str();
    auto kernel = call_kernel(options);
    REQUIRE(kernel);
    return *kernel;
}

std::string emitted(const kvjit::Kernel& kernel, kvjit_stage stage) {
    const auto text = kernel.emit(stage, KVJIT_PROGRAM_STORE);
    REQUIRE(text);
    return *text;
}

/// The text's lines that begin with `name`.
std::string line(const std::string& text, const std::string& name) {
    const std::size_t begin = text.find(name);
    REQUIRE(begin != text.npos);
    return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

TEST_CASE("an unchanged copy of the templates gives the same source and provenance") {
    const TemplateFolder templates;
    const kvjit::Kernel own = kernel_with_templates(templates.path());
    kvjit::EngineOptions options;
    options.cache_dir = "";
    const auto embedded = call_kernel(options);
    REQUIRE(embedded);
    CHECK(emitted(own, KVJIT_STAGE_SOURCE) == emitted(*embedded, KVJIT_STAGE_SOURCE));
    CHECK(emitted(own, KVJIT_STAGE_IDENTITY) == emitted(*embedded, KVJIT_STAGE_IDENTITY));
}

TEST_CASE("a changed template changes source, provenance and what runs, but not the identity") {
    const TemplateFolder templates;
    const std::string before = emitted(kernel_with_templates(templates.path()), KVJIT_STAGE_IDENTITY);
    write_file(templates.path("cpu/store.cc"), kIdleStore);
    const kvjit::Kernel idle = kernel_with_templates(templates.path());
    const std::string after = emitted(idle, KVJIT_STAGE_IDENTITY);
    CHECK(holds(emitted(idle, KVJIT_STAGE_SOURCE), "kvjit_store(const kvjit::abi::StoreArgs*, "));
    CHECK(line(before, "identity: ") == line(after, "identity: "));
    CHECK(line(before, "provenance: ") != line(after, "provenance: "));

    const ApiCall call = make_call(1, 1, 40);
    const std::span<const std::byte> cache = bytes_of(call.tensors.cache);
    const std::vector<std::byte> untouched(cache.begin(), cache.end());
    REQUIRE(plan_and_run(idle, call));
    CHECK(std::ranges::equal(cache, untouched));
}

TEST_CASE("a changed template is a miss in a cache that the old one filled") {
    const TemporaryFolder cache;
    run_child(cache.path());
    const TemplateFolder templates;
    write_file(templates.path("cpu/store.cc"), kIdleStore);
    const std::string variable = "KVJIT_TEMPLATE_DIR=" + templates.path();
    const Report changed = run_child(cache.path(), {variable});
    CHECK(changed.number("compiles") == 1);
    CHECK(changed.number("disk_hits") == kCallPrograms - 1);
    CHECK(run_child(cache.path(), {variable}).number("compiles") == 0);
    CHECK(run_child(cache.path()).number("compiles") == 0);
}

TEST_CASE("a template that doesn't compile: the error holds Clang's message, the folder's file and the line") {
    const TemplateFolder templates;
    const std::string text = read_file(templates.path("cpu/store.cc"));
    write_file(templates.path("cpu/store.cc"), text + "static_assert(no_such_name);\n");
    const auto broken_line = std::ranges::count(text, '\n') + 1;
    const auto done = kernel_with_templates(templates.path()).prepare(KVJIT_PROGRAM_STORE);
    REQUIRE(!done);
    CHECK(done.error().status() == KVJIT_COMPILE_FAILED);
    INFO(done.error().message());
    CHECK(holds(done.error().message(), templates.path("cpu/store.cc") + ":" + std::to_string(broken_line) + ":"));
    CHECK(holds(done.error().message(), "no_such_name"));
}

TEST_CASE("other programs of a kernel with one broken template still work") {
    const TemplateFolder templates;
    write_file(templates.path("cpu/merge.cc"), "#error broken\n");
    const kvjit::Kernel kernel = kernel_with_templates(templates.path());
    CHECK(kernel.prepare(KVJIT_PROGRAM_STORE));
    CHECK(!kernel.prepare(KVJIT_PROGRAM_MERGE));
}

TEST_CASE("a template that includes a system header is refused with its line") {
    const TemplateFolder templates;
    write_file(templates.path("cpu/store.cc"), "// one line\n#include <math.h>\n");
    const auto done = kernel_with_templates(templates.path()).prepare(KVJIT_PROGRAM_STORE);
    REQUIRE(!done);
    CHECK(done.error().status() == KVJIT_BAD_FILE);
    CHECK(holds(done.error().message(), "cpu/store.cc:2"));
}

TEST_CASE("a folder without the template is an error that names the file") {
    const TemporaryFolder empty;
    const auto done = kernel_with_templates(empty.path()).prepare(KVJIT_PROGRAM_STORE);
    REQUIRE(!done);
    CHECK(done.error().status() == KVJIT_BAD_FILE);
    CHECK(holds(done.error().message(), empty.path("cpu/store.cc")));
}
