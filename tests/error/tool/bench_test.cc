// `kvjit bench` and `kvjit compare`: what they measure and what they refuse.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "child.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

using nlohmann::json;

/// Quick: one layer, five passes.
ChildResult bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    for (const char* option : {"--seconds", "0", "--layers", "1", "--threads", "1"}) arguments.emplace_back(option);
    return run_kvjit(arguments);
}

void expect_refused(const ChildResult& result, const std::string& part) {
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_MESSAGE(result.err.find(part) != std::string::npos, result.err);
}

TEST_CASE("every operator, mode and kind of cache is measured") {
    for (const char* spec : {"op=KeyValueCache,head_dim=64", "op=MultiHeadAttention,head_dim=64,group=2,attn_mask=2",
                             "op=Merge,head_dim=64", "head_dim=64,group=2,cache_mode=offset,is_alibi=1",
                             "head_dim=64,cache_mode=token_table,quant_bit=8",
                             "head_dim=64,cache_mode=page_table,page_size=16,quant_bit=4,quant_group=16",
                             "head_dim=64,cache_mode=block_pointers,page_size=8,layout=L2HTD,quant_bit=8",
                             "layout=vllm:LBNHC,head_dim=64,page_size=16"}) {
        CAPTURE(std::string(spec));
        const ChildResult measured = bench({spec, "--batch", "2x1:700+1x3:5", "--json"});
        REQUIRE_MESSAGE(measured.exit_code == 0, measured.err);
        const json row = json::parse(measured.out)["rows"][0];
        CHECK(row["batch"] == "2x1:700+1x3:5");
        CHECK(row["ms"] > 0);
        CHECK(row["ms_p10"] <= row["ms"]);
        CHECK(row["bytes"] > 0);
        CHECK(row["rounds"] == 5);
        CHECK(row["read_limit"] > 0);
    }
}

TEST_CASE("layers lie in one cache or in many") {
    for (const char* spec : {"head_dim=64,layout=L2HTD", "layout=vllm:LBNHC,head_dim=64,page_size=16"}) {
        const ChildResult measured =
            run_kvjit({"bench", spec, "--batch", "1x1:64", "--layers", "3", "--seconds", "0", "--json"});
        REQUIRE_MESSAGE(measured.exit_code == 0, measured.err);
        CHECK(json::parse(measured.out)["rows"][0]["layers"] == 3);
    }
}

TEST_CASE("kernels of other templates take turns with the library's") {
    const TemporaryFolder folder;
    const std::string edited = folder.path() + "/edited";
    std::filesystem::copy(KVJIT_TEMPLATES, edited, std::filesystem::copy_options::recursive);
    std::ofstream(edited + "/cpu/attend_decode.cc", std::ios::app) << "// other text, another kernel\n";
    for (const char* spec : {"head_dim=64,layout=L2HTD", "layout=vllm:LBNHC,head_dim=64,page_size=16"}) {
        CAPTURE(std::string(spec));
        const ChildResult measured = bench({spec, "--batch", "1x1:64", "--against", edited, "--json"});
        REQUIRE_MESSAGE(measured.exit_code == 0, measured.err);
        const json report = json::parse(measured.out), row = report["rows"][0];
        CHECK(report["against"] == edited);
        CHECK(row["against_ms"] > 0);
        CHECK(row["times"] > 0);
        CHECK(row["times_p10"] <= row["times"]);
        CHECK(row["times"] <= row["times_p90"]);
    }
    std::ofstream(edited + "/cpu/attend_decode.cc", std::ios::app) << "no C++\n";
    expect_refused(bench({"head_dim=64", "--batch", "1x1:64", "--against", edited}), "KVJIT_COMPILE_FAILED");
    expect_refused(bench({"head_dim=64", "--batch", "1x1:64", "--against", folder.path() + "/none"}), "/none");
}

TEST_CASE("bad arguments") {
    expect_refused(bench({"head_dim=63x"}), "head_dim");
    expect_refused(bench({"head_dim=64", "--batch", "8*1:2"}), "SEQUENCESxTOKENS:KEYS");
    expect_refused(bench({"head_dim=64", "--target", "cuda-emulated"}), "--threads is given, and --target is cuda-");
    expect_refused(run_kvjit({"bench", "head_dim=64", "--target", "cuda-emulated"}), "which is no GPU");
    expect_refused(run_kvjit({"bench", "none.safetensors"}), "none.safetensors");
    expect_refused(run_kvjit({"bench", "none.safetensors", "--batch", "1x1:1"}), "--batch is given");
    expect_refused(run_kvjit({"bench", "none.safetensors", "--layers", "2"}), "--layers is given");
    expect_refused(run_kvjit({"bench", "head_dim=64", "--seconds", "nan"}), "--seconds");
    expect_refused(bench({"head_dim=512", "--batch", "65536x1:1000000"}), "there is memory for");
    expect_refused(run_kvjit({"bench"}), "SPEC is missing");
    expect_refused(
        run_kvjit({"bench", "op=Relayout"}),
        "op is Relayout; calls are made up of KeyValueCache, MultiHeadAttention, MultiHeadCacheAttention and "
        "Merge");
    expect_refused(run_kvjit({"bench", "none.safetensors", "head_dim=64"}),
                   "'none.safetensors' is a recorded call, and 'head_dim=64' a part of a spec: measure them one after "
                   "the other");
    expect_refused(run_kvjit({"bench", "head_dim=64", "--seconds", "-1"}), "--seconds");
}

class Reports {
public:
    /// A row for each time.
    std::string write(const std::string& name, const std::vector<double>& times, const std::string& batch = "1x1:1",
                      int threads = 1) {
        json rows = json::array();
        for (const double ms : times) {
            rows.push_back({{"spec", "head_dim=64"},
                            {"batch", batch},
                            {"layers", 1},
                            {"ms", ms},
                            {"share_of_reading", 0.5},
                            {"share_of_multiply_add", 0.1}});
        }
        return folder_.write(name, json{{"format", "kvjit.bench.1"},
                                        {"device", "P, " + std::to_string(threads) + " threads"},
                                        {"target", "host"},
                                        {"rows", rows}}
                                       .dump());
    }
    const TemporaryFolder& folder() const { return folder_; }

private:
    TemporaryFolder folder_;
};

TEST_CASE("compare holds the second report to the first") {
    Reports reports;
    const std::string fast = reports.write("fast", {1}), slow = reports.write("slow", {1.5});
    const ChildResult compared = run_kvjit({"compare", fast, slow});
    CHECK(compared.exit_code == 0);
    CHECK_MESSAGE(compared.out.find("1x1:1  1.000  1.500  1.50  50%") != std::string::npos, compared.out);
    CHECK(run_kvjit({"compare", fast, slow, "--most", "1.4"}).exit_code == 1);
    CHECK(run_kvjit({"compare", fast, slow, "--most", "1.6"}).exit_code == 0);
    CHECK(run_kvjit({"compare", slow, fast, "--most", "1.0"}).exit_code == 0);
    const ChildResult as_json = run_kvjit({"compare", fast, slow, "--json"});
    CHECK(json::parse(as_json.out)["rows"][0]["times"] == 1.5);
}

TEST_CASE("rows that are alike are compared in turn; a missing one is no pass; other machines are told") {
    Reports reports;
    const std::string two = reports.write("two", {1, 2}), slower = reports.write("slower", {1, 20});
    CHECK(run_kvjit({"compare", two, slower, "--most", "2"}).exit_code == 1);
    const std::string one = reports.write("one", {1}, "1x1:1", 2);
    const ChildResult missing = run_kvjit({"compare", two, one, "--most", "2"});
    CHECK(missing.exit_code == 1);
    CHECK_MESSAGE(missing.out.find("only in A: 1x1:1 on 1 layers, head_dim=64") != std::string::npos, missing.out);
    CHECK_MESSAGE(missing.out.find("B on P, 2 threads") != std::string::npos, missing.out);
    CHECK(run_kvjit({"compare", two, one}).exit_code == 0);
    for (const char* most : {"0", "-1", "nan"}) {
        expect_refused(run_kvjit({"compare", two, two, "--most", most}), "--most is ");
    }
}

TEST_CASE("compare refuses what isn't a report") {
    Reports reports;
    const std::string good = reports.write("good", {1}), other = reports.write("other", {1}, "2x1:1");
    const std::string bad = reports.folder().write("bad", "{}");
    expect_refused(run_kvjit({"compare", good, bad}), "'" + bad + "' is not what kvjit bench --json prints");
    expect_refused(run_kvjit({"compare", good, reports.folder().path("none")}), "none");
    expect_refused(run_kvjit({"compare", good, other}), "no spec and batch in common");
    expect_refused(run_kvjit({"compare", good}), "B is missing");
    expect_refused(run_kvjit({"compare", "-", "-"}), "A and B are both -: there is one standard input");
}

}  // namespace
}  // namespace kvjit::test
