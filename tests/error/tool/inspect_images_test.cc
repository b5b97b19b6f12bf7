// Where `kvjit inspect` finds images, with a compiler and without.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "child.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

/// A folder with kernels.kvjb, which has Merge of head_dim 64 for x86-64, and no compiler while it is there.
struct WithoutCompiler {
    WithoutCompiler() {
        const ChildResult made =
            run_kvjit({"bundle", "create", bundle, "--targets", "x86-64", "-q", "op=Merge,head_dim=64"});
        REQUIRE_MESSAGE(made.exit_code == 0, made.err);
        setenv("KVJIT_COMPILER", "/nowhere/libkvjit_compiler.so", 1);
        setenv("KVJIT_CACHE_DIR", folder.path("cache").c_str(), 1);
    }
    ~WithoutCompiler() {
        unsetenv("KVJIT_COMPILER");
        unsetenv("KVJIT_CACHE_DIR");
    }
    /// Of a spec, with the bundle.
    ChildResult inspect(std::vector<std::string> arguments, Output output = Output::kCaptured) const {
        arguments.insert(arguments.begin(), "inspect");
        arguments.insert(arguments.end(), {"--bundle", bundle});
        return run_kvjit(arguments, output);
    }

    TemporaryFolder folder;
    std::string bundle = folder.path("kernels.kvjb");
};

TEST_CASE("--images tells which bundle has what is run, and what nobody has") {
    const WithoutCompiler here;
    const ChildResult has = here.inspect({"op=Merge,head_dim=64", "--images"});
    CAPTURE(has.out);
    CHECK(has.exit_code == 0);
    CHECK(has.err.empty());
    CHECK(std::ranges::count(has.out, '\n') == 2);
    CHECK(has.out.starts_with("program  origin  bytes "));
    CHECK(mentions(has.out, "\nmerge    bundle  "));
    CHECK(mentions(has.out, " x86-64  " + here.bundle + "\n"));
    CHECK(mentions(has.out, "  simd revision "));
    const ChildResult lacks = here.inspect({"op=Merge,head_dim=128", "--images", "--target", "x86-64"});
    CHECK(lacks.exit_code == 0);
    CHECK(mentions(lacks.out, "\nmerge    none    -      simd revision "));
    CHECK(lacks.out.ends_with(" x86-64\n"));
}

TEST_CASE("--images lists the other programs beside one whose entry is damaged") {
    const TemporaryFolder folder;
    const std::string bundle = folder.path("kernels.kvjb"), spec = "op=KeyValueCache,head_dim=64";
    REQUIRE(run_kvjit({"bundle", "create", bundle, "--targets", "x86-64", spec}).exit_code == 0);
    const auto json = nlohmann::json::parse(run_kvjit({"bundle", "list", bundle, "--json"}).out);
    std::string bytes = read_file(bundle);
    for (const auto& entry : json["entries"]) {
        const std::string identity = entry["identity"];
        if (identity.starts_with("store;")) bytes[entry["offset"].get<std::size_t>() + identity.size() + 3] ^= 1;
    }
    const std::string bad = folder.write("bad.kvjb", bytes);
    setenv("KVJIT_JIT", "off", 1);
    setenv("KVJIT_CACHE_DIR", folder.path("cache").c_str(), 1);
    const ChildResult listed = run_kvjit({"inspect", spec, "--target", "x86-64", "--bundle", bad, "--images"});
    unsetenv("KVJIT_JIT");
    unsetenv("KVJIT_CACHE_DIR");
    CHECK(listed.exit_code == 2);
    CHECK_MESSAGE(mentions(listed.out, "\nload     bundle  "), listed.out);
    CHECK(!mentions(listed.out, "\nstore"));
    CHECK_MESSAGE(mentions(listed.err, "store: KVJIT_BAD_FILE: "), listed.err);
    CHECK_MESSAGE(mentions(listed.err, "it is of store for x86_64-unknown-linux-gnu:x86-64"), listed.err);
}

TEST_CASE("a bundle's object, source and identity are shown without a compiler; assembly needs one") {
    const WithoutCompiler here;
    const std::string file = here.folder.path("merge.o");
    const ChildResult written = here.inspect({"op=Merge,head_dim=64", "--emit", "object", "-o", file});
    CHECK_MESSAGE(written.exit_code == 0, written.err);
    CHECK(written.out.empty());
    const std::string object = read_file(file);
    CHECK(
        object.starts_with("\x7f"
                           "ELF"));
    CHECK(mentions(read_file(here.bundle), object));
    CHECK(here.inspect({"op=Merge,head_dim=64", "--emit", "object"}).out == object);
    CHECK(mentions(here.inspect({"op=Merge,head_dim=64", "--emit", "source"}).out, "kvjit_merge"));
    const std::string stored = here.inspect({"op=Merge,head_dim=64", "--emit", "identity"}).out;
    CHECK(stored.starts_with("identity: merge;"));
    CHECK(mentions(stored, "\nprovenance: source="));
    const ChildResult alone = here.inspect({"op=Merge,head_dim=128", "--emit", "identity"});
    CHECK_MESSAGE(alone.exit_code == 0, alone.err);
    CHECK(alone.out.starts_with("identity: merge;"));
    CHECK(std::ranges::count(alone.out, '\n') == 1);
    const ChildResult assembly = here.inspect({"op=Merge,head_dim=64", "--emit", "asm"});
    CHECK(assembly.exit_code == 2);
    CHECK(mentions(assembly.err, "KVJIT_COMPILER_MISSING"));
}

TEST_CASE("an object is written to no terminal, and one at a time" * doctest::skip(!has_terminals())) {
    const WithoutCompiler here;
    const ChildResult terminal = here.inspect({"op=Merge,head_dim=64", "--emit", "object"}, Output::kTerminal);
    CHECK(terminal.exit_code == 2);
    CHECK(terminal.err == "kvjit: an object is no text for a terminal: -o FILE, or > FILE\n");
    const std::string file = here.folder.path("merge.o");
    CHECK(here.inspect({"op=Merge,head_dim=64", "--emit", "object", "-o", file}, Output::kTerminal).exit_code == 0);
    CHECK(here.inspect({"op=Merge,head_dim=64", "--images"}, Output::kTerminal).exit_code == 0);
    const ChildResult several = here.inspect({"head_dim=64", "--emit", "object", "-o", here.folder.path("all.o")});
    CHECK(several.exit_code == 2);
    CHECK(mentions(several.err,
                   "--program is all; on host this op has decode, merge, prefill, store: name one, or -o FOLDER/\n"));
    CHECK(!std::filesystem::exists(here.folder.path("all.o")));
}

}  // namespace
}  // namespace kvjit::test
