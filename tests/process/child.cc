// A process of an engine: opens a cache folder, runs one call, and says what it saw as lines "name value".
//     process_child CACHE_FOLDER
// The environment decides the rest (KVJIT_JIT, KVJIT_TEMPLATE_DIR, KVJIT_COMPILER; KVJIT_TEST_TARGET: else host;
// KVJIT_TEST_BUNDLE: bundles to add, with colons between;
// KVJIT_TEST_RUNS: how often the call is run, else once; KVJIT_TEST_PROC: a descriptor of the folder /proc, where the
// process's root has none).
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "call.h"

namespace {

void say(const char* name, const std::string& value) {
    std::printf("%s %s\n", name, value.c_str());
}
void say(const char* name, std::int64_t value) {
    say(name, std::to_string(value));
}

/// What /proc/self/maps says; nothing if it can't be read.
std::string read_maps() {
    const char* descriptor = std::getenv("KVJIT_TEST_PROC");
    const int folder = descriptor != nullptr ? std::atoi(descriptor) : open("/proc", O_RDONLY | O_DIRECTORY);
    const int maps = openat(folder, "self/maps", O_RDONLY);
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(maps, buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
}

/// Mappings of this process whose line in /proc/self/maps holds the text.
std::int64_t mappings(const std::string& text) {
    std::istringstream maps(read_maps());
    std::int64_t found = 0;
    for (std::string line; std::getline(maps, line);) found += line.find(text) != std::string::npos;
    return found;
}

/// Adds the bundles, and says of those that are refused why.
void add_bundles(kvjit::Engine& engine, const char* paths) {
    std::istringstream list(paths != nullptr ? paths : "");
    for (std::string path; std::getline(list, path, ':');) {
        const auto added = engine.add_bundle(path);
        if (!added) say("refused", added.error().message());
    }
}

kvjit::Result<void> run(const char* folder) {
    kvjit::EngineOptions options;
    options.cache_dir = folder;
    auto engine = kvjit::Engine::create(options);
    if (!engine) return engine.error();
    add_bundles(*engine, std::getenv("KVJIT_TEST_BUNDLE"));
    const char* name = std::getenv("KVJIT_TEST_TARGET");
    const auto target = kvjit::Target::cpu(name != nullptr ? name : "host");
    if (!target) return target.error();
    const auto kernel = engine->kernel(*kvjit::KernelSpec::parse(kvjit::test::kCallSpec), *target);
    if (!kernel) return kernel.error();
    if (auto done = kernel->prepare(); !done) return done;
    const kvjit::test::ApiCall call = kvjit::test::make_call(2, 1, 40);
    const char* runs = std::getenv("KVJIT_TEST_RUNS");
    for (int left = runs != nullptr ? std::atoi(runs) : 1; left > 0; --left) {
        if (auto done = kvjit::test::plan_and_run(*kernel, call); !done) return done;
    }
    const kvjit_engine_stats stats = engine->stats();
    say("compiles", stats.compiles);
    say("disk_hits", stats.disk_hits);
    say("bundle_hits", stats.bundle_hits);
    say("output", std::to_string(kvjit::test::output_hash(call)));
    for (const char* text : {"libkvjit.so", "libkvjit_compiler", "libkvjit_emulation", "libnvrtc", "rwx"}) {
        say(text, mappings(text));
    }
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const auto done = run(argv[1]);
    say("status", done ? "KVJIT_OK" : kvjit_status_name(done.error().status()));
    if (!done) say("message", done.error().message());
    return 0;
}
