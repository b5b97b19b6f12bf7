// Intel's JIT profiling interface: what a collector is told of an engine's kernels, wherever they come from.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "fixture.h"
#include "support/collected.h"

using namespace kvjit::test;

namespace {

using Methods = std::map<std::uint64_t, CollectedMethod>;

/// Runs a process, and what its collector was told.
class Collecting {
public:
    Report run(const std::string& cache, std::vector<std::string> environment = {}) {
        environment.push_back("INTEL_JIT_PROFILER64=" KVJIT_TEST_COLLECTOR);
        environment.push_back("KVJIT_TEST_COLLECTED=" + folder_.path("methods"));
        const Report report = run_child(cache, environment);
        CHECK_MESSAGE(report["status"] == "KVJIT_OK", report["message"]);
        return report;
    }
    Methods methods() const { return collected_methods(read_file(folder_.path("methods"))); }

private:
    TemporaryFolder folder_;
};

std::int64_t lines_in(const std::string& file) {
    const std::string text = read_file(file);
    return std::ranges::count(text, '\n');
}

/// Of a template: "cpu/attend/decode_panel.h" of any name that ends so.
std::string template_of(const std::string& file) {
    const std::size_t at = file.rfind("cpu/");
    return at == file.npos ? "" : KVJIT_TEMPLATES "/" + file.substr(at);
}

void check_method(const CollectedMethod& method) {
    CAPTURE(method.name);
    CAPTURE(method.file);
    CHECK(method.bytes > 0);
    CHECK(std::regex_match(method.name, std::regex("[a-z_]+-[0-9a-f]{8}:(kvjit_[a-z_]+|mem[a-z]+|.*kvjit::.+)")));
    CHECK(std::ranges::is_sorted(method.ends));
    CHECK(method.is_unloaded);
    if (method.lines.empty()) return;
    CHECK(method.ends.back() <= method.bytes);
    if (const std::string file = template_of(method.file); !file.empty()) {
        CHECK(static_cast<std::int64_t>(*method.lines.rbegin()) <= lines_in(file));
    }
}

/// A decode ran: its entry, and a function that is not inlined, are there with their lines.
void check_decode(const Methods& methods) {
    for (const auto& [id, method] : methods) check_method(method);
    for (const std::string name : {":kvjit_attend_decode", ":kvjit::score_chunk"}) {
        CAPTURE(name);
        const auto found =
            std::ranges::find_if(methods, [&](const auto& entry) { return entry.second.name.ends_with(name); });
        REQUIRE(found != methods.end());
        CHECK(found->second.name.starts_with("attend_decode-"));
        CHECK(!template_of(found->second.file).empty());
        CHECK(found->second.lines.size() > 1);
    }
}

}  // namespace

TEST_CASE("kernels that are compiled, and then come from the disk, are told to a collector") {
    const TemporaryFolder cache;
    Collecting cold, warm;
    CHECK(cold.run(cache.path()).number("compiles") > 0);
    check_decode(cold.methods());
    CHECK(warm.run(cache.path()).number("compiles") == 0);
    check_decode(warm.methods());
    CHECK(warm.methods().size() == cold.methods().size());
}

TEST_CASE("so are a bundle's") {
    const Shipped shipped;
    const TemporaryFolder empty;
    Collecting process;
    const Report report = process.run(empty.path(), {"KVJIT_JIT=off", "KVJIT_TEST_BUNDLE=" + shipped.bundle()});
    CHECK(report.number("bundle_hits") > 0);
    check_decode(process.methods());
}

TEST_CASE("a collector that is missing, is none, or is off keeps no kernel from running") {
    const TemporaryFolder cache;
    const Report plain = run_child(cache.path());
    REQUIRE(plain["status"] == "KVJIT_OK");
    for (const std::string library : {"/nowhere/collector.so", "libc.so.6", "", KVJIT_TEST_COLLECTOR}) {
        CAPTURE(library);
        const Report report =
            run_child(cache.path(), {"INTEL_JIT_PROFILER64='" + library + "'", "KVJIT_TEST_COLLECTED=off"});
        CHECK(report["status"] == "KVJIT_OK");
        CHECK(report["output"] == plain["output"]);
    }
}
