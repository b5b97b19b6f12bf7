// What an engine does so that it compiles nothing while it serves: traces, prepares, seals.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "call.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

std::vector<std::string> lines_of(const std::string& path) {
    std::istringstream text(read_file(path));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

/// What an engine is told of late compiles: "spec program".
using Told = std::vector<std::string>;

void take_late(void* told, const char* spec, const char* program) {
    static_cast<Told*>(told)->push_back(std::string(spec) + " " + program);
}

}  // namespace

TEST_CASE("KVJIT_TRACE_SPECS is written by all processes, a whole line each time, and read as a list") {
    const TemporaryFolder folder;
    const std::string trace = folder.path("specs.txt");
    const std::vector<std::string> environment = {"KVJIT_TRACE_SPECS=" + trace};
    Child first(folder.path("cache"), environment), second(folder.path("cache"), environment);
    CHECK(first.finish()["status"] == "KVJIT_OK");
    CHECK(second.finish()["status"] == "KVJIT_OK");
    std::vector<std::string> lines = lines_of(trace);
    CHECK(lines.size() == 2 * kCallPrograms);
    for (const char* program : {"store", "decode", "prefill", "merge"}) {
        const auto is_of = [&](const std::string& line) { return line.ends_with(std::string(" program=") + program); };
        CHECK(std::ranges::count_if(lines, is_of) == 2);
    }
    const auto list = kvjit::SpecList::parse(read_file(trace));
    REQUIRE(list);
    REQUIRE(list->specs.size() == 1);
    CHECK(*list->specs[0].text() == *kvjit::KernelSpec::parse(kCallSpec)->text());
    const std::string target = lines[0].substr(lines[0].find("  # target=") + 11);
    CHECK(kvjit::Target::cpu(target.substr(0, target.find(' ')))->text() == kvjit::Target::host()->text());
}

TEST_CASE("the option stands above the variable, and a trace that can't be written fails nothing") {
    const TemporaryFolder folder;
    const Report report = run_child(folder.path("cache"), {"KVJIT_TRACE_SPECS=" + folder.path("nowhere/specs.txt")});
    CHECK(report["status"] == "KVJIT_OK");
    kvjit::EngineOptions options;
    options.cache_dir = "";
    const std::string trace = folder.path("specs.txt");
    options.trace_specs = trace.c_str();
    REQUIRE(kvjit::Engine::create(options)->prepare({*kvjit::KernelSpec::parse("op=Merge,head_dim=8")}));
    REQUIRE(lines_of(trace).size() == 1);
    CHECK(lines_of(trace)[0].starts_with("op=Merge,head_dim=8  # target=x86-64"));
}

TEST_CASE("an engine that prepared all of its list compiles nothing late; what it forgot is told") {
    const auto list = kvjit::SpecList::parse("op=Merge head_dim={8..32..8}\nop=KeyValueCache head_dim=8 t1=f32\n");
    REQUIRE(list);
    kvjit::EngineOptions options;
    options.cache_dir = "";
    Told told;
    options.on_late_compile = take_late;
    options.late_compile_context = &told;
    auto engine = kvjit::Engine::create(options);
    REQUIRE(engine);
    kvjit::PrepareOptions how;
    std::vector<std::string> steps;
    how.progress_context = &steps;
    how.progress = [](void* to, std::int64_t done, std::int64_t total, const char* spec, const kvjit_error* failure) {
        CHECK(failure == nullptr);
        static_cast<std::vector<std::string>*>(to)->push_back(std::to_string(done) + "/" + std::to_string(total));
        CHECK(kvjit::KernelSpec::parse(spec));
    };
    REQUIRE(engine->prepare(list->specs, how));
    CHECK(steps == std::vector<std::string>{"1/5", "2/5", "3/5", "4/5", "5/5"});
    CHECK(engine->stats().compiles == 4 + 2);
    engine->seal();
    for (const kvjit::KernelSpec& spec : list->specs) CHECK(engine->kernel(spec)->prepare());
    CHECK(engine->stats().late_compiles == 0);
    CHECK(engine->kernel(*kvjit::KernelSpec::parse("op=Merge,head_dim=40"))->prepare());
    CHECK(engine->stats().late_compiles == 1);
    CHECK(told == Told{"op=Merge,head_dim=40 merge"});
}

TEST_CASE("specs that can't be prepared are told one by one, and the first is the error") {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    const auto engine = kvjit::Engine::create(options);
    REQUIRE(engine);
    std::vector<kvjit::KernelSpec> specs(3);
    for (kvjit::KernelSpec& spec : specs) spec.op = KVJIT_OP_MERGE;
    specs[1].head_dim = 513;
    specs[2].head_dim = 8;
    kvjit::PrepareOptions how;
    std::string failure;
    how.progress_context = &failure;
    how.progress = [](void* to, std::int64_t, std::int64_t, const char*, const kvjit_error* error) {
        if (error != nullptr) *static_cast<std::string*>(to) += error->argument;
    };
    const auto done = engine->prepare(specs, *kvjit::Target::host(), how);
    REQUIRE(!done);
    CHECK(done.error().status() == KVJIT_BAD_SPEC);
    CHECK(done.error().argument() == std::string("specs[1]"));
    CHECK(done.error().value() == 1);
    CHECK(failure == "head_dim");
    CHECK(engine->stats().compiles == 2);
}
