// What `kvjit bench` is told, and what it writes and `kvjit compare` reads.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "bench/batch_text.h"
#include "bench/figures.h"
#include "bench/report.h"

namespace kvjit::tool {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST_CASE("a batch is groups of sequences") {
    const auto one = parse_batch("1:7");
    CHECK(one->tokens == Numbers{1});
    CHECK(one->keys == Numbers{7});
    const auto mixed = parse_batch("2x1:4096+512:512+1x3:9");
    REQUIRE(mixed.has_value());
    CHECK(mixed->tokens == Numbers{1, 1, 512, 3});
    CHECK(mixed->keys == Numbers{4096, 4096, 512, 9});
    CHECK(mixed->new_tokens() == 517);
    CHECK(parse_batch("65536x1:1").has_value());
    for (const std::string& usual : kUsualBatches) CHECK(parse_batch(usual).has_value());
}

TEST_CASE("what is no batch is named with what a batch is") {
    for (const char* text : {"",          "1",           "x",      ":",      "1:",
                             ":1",        "1x",          "x1:1",   "1x1:",   "0x1:1",
                             "1x0:1",     "1x1:0",       "1x2:1",  "-1x1:1", "1x1:1+",
                             "+1x1:1",    "1x1:1,1x1:1", "1x1:1 ", "1X1:1",  "1x1:99999999999999999999",
                             "65537x1:1", "1x1:16777217"}) {
        CAPTURE(std::string(text));
        const auto parsed = parse_batch(text);
        REQUIRE(!parsed.has_value());
        CHECK_MESSAGE(parsed.error().find("SEQUENCESxTOKENS:KEYS") != std::string::npos, parsed.error());
    }
    const auto rule = [](const char* text) {
        const std::string error = parse_batch(text).error();
        return error.substr(0, error.find(';'));
    };
    CHECK(rule("8") == "--batch has '8': there is no colon before KEYS");
    CHECK(rule("1x1:1+0x1:1") == "--batch has '0x1:1': SEQUENCES is '0', not an integer from 1 to 65536");
    CHECK(rule("8*1:2") == "--batch has '8*1:2': TOKENS is '8*1', not an integer from 1 to 16777216");
    CHECK(rule("1:16777217") == "--batch has '1:16777217': KEYS is '16777217', not an integer from 1 to 16777216");
    CHECK(rule("1x2:1") == "--batch has '1x2:1': TOKENS is 2 and KEYS 1, but new tokens are among the keys");
    const auto many = parse_batch("40000x1:1+40000x1:1");
    REQUIRE(!many.has_value());
    CHECK(many.error() == "--batch '40000x1:1+40000x1:1' has 80000 sequences; it takes up to 65536");
}

TEST_CASE("a spread is of the values' ranks") {
    std::vector<double> values;
    for (int i = 100; i >= 0; --i) values.push_back(i);
    const Spread spread = spread_of(values);
    CHECK(spread.median == 50);
    CHECK(spread.p10 == 10);
    CHECK(spread.p90 == 90);
    CHECK(spread_of({3}).p90 == 3);
    CHECK(spread_of({4, 1, 2, 3}).median == 2.5);
}

BenchReport report() {
    Measurement measured;
    measured.seconds = {0.002, 0.001, 0.004};
    measured.rounds = 7;
    measured.bytes = 8'000'000;
    measured.operations = 1'000'000;
    measured.reading = {4e9, 8e9, 0.5};
    measured.arithmetic = {0.5e9, 100e9, 0.005};
    return {"A processor, 2 threads",
            "host",
            "",
            "How it was measured.\n",
            {{"head_dim=64", "8x1:512", 3, 8, "multiply-add", measured},
             {"head_dim=128", "1x1:1", 1, 1, "tensor cores", measured}}};
}

TEST_CASE("a report's rates, in a table and as JSON") {
    const std::string text = bench_text(report());
    CHECK_MESSAGE(text.find("8x1:512  3       2.00  1.00 to 4.00  4000      4.00  50% of 8.00  0.500    0% of 100") !=
                      std::string::npos,
                  text);
    CHECK(text.find("head_dim=64\n") < text.find("of multiply-add\n"));
    CHECK(text.find("of multiply-add\n") < text.find("head_dim=128\n"));
    CHECK(text.find("head_dim=128\n") < text.find("of tensor cores\n"));
    CHECK(text.ends_with("How it was measured.\n"));
    const Json json = bench_json(report());
    CHECK(json["format"] == kBenchFormat);
    CHECK(json["rows"][0]["tokens_per_second"] == 4000);
    CHECK(json["rows"][0]["ms_p90"] == 4);
    CHECK(json["rows"][1]["bytes"] == 8'000'000);
    CHECK(json["rows"][1]["arithmetic"] == "tensor cores");
    CHECK(json["notes"] == "How it was measured.\n");
}

TEST_CASE("calls of other templates' kernels stand beside a report's, in the table and in JSON") {
    BenchReport both = report();
    both.against = "edited";
    for (BenchRow& row : both.rows) row.measured.rival = {{0.0025, 0.002, 0.003}, {0.8, 0.75, 0.9}};
    const std::string text = bench_text(both);
    CHECK_MESSAGE(text.contains("8x1:512  3       2.00  1.00 to 4.00  2.50         0.800  0.750 to 0.900     4000"),
                  text);
    CHECK(text.contains("Against: the same calls with kernels of the templates in edited, in turns"));
    const Json json = bench_json(both);
    CHECK(json["against"] == "edited");
    CHECK(json["rows"][0]["against_ms"] == 2.5);
    CHECK(json["rows"][1]["times"] == 0.8);
    CHECK(json["rows"][1]["times_p10"] == 0.75);
    CHECK(json["rows"][1]["times_p90"] == 0.9);
    CHECK(!bench_json(report()).contains("against"));
    CHECK(!bench_json(report())["rows"][0].contains("times"));
    CHECK(read_bench_json(dump(json), "a.json")->rows.size() == 2);
}

TEST_CASE("what is written as JSON is read again; the nearer limit counts") {
    const auto figures = read_bench_json(dump(bench_json(report())), "a.json");
    REQUIRE(figures.has_value());
    CHECK(figures->machine == "A processor, 2 threads, target host");
    REQUIRE(figures->rows.size() == 2);
    CHECK(figures->rows[0].spec == "head_dim=64");
    CHECK(figures->rows[0].batch == "8x1:512");
    CHECK(figures->rows[0].layers == 3);
    CHECK(figures->rows[0].milliseconds == 2);
    CHECK(figures->rows[0].share == 0.5);
}

TEST_CASE("other JSON is refused, with the file's name") {
    Json json = bench_json(report());
    json["format"] = "kvjit.bench.9";
    std::vector<std::string> texts = {"", "{", "[]", "{}", "7", dump(json)};
    for (const char* field : {"spec", "batch", "ms", "layers", "share_of_reading", "share_of_multiply_add"}) {
        Json without = bench_json(report());
        without["rows"][1].erase(field);
        texts.push_back(dump(without));
        without["rows"][1][field] = Json::array();
        texts.push_back(dump(without));
    }
    for (const double ms : {-1.0, 0.0}) {
        Json wrong = bench_json(report());
        wrong["rows"][0]["ms"] = ms;
        texts.push_back(dump(wrong));
    }
    for (const std::string& text : texts) {
        const auto read = read_bench_json(text, "a.json");
        REQUIRE_MESSAGE(!read.has_value(), text);
        CHECK_MESSAGE(read.error().starts_with("'a.json' is not what kvjit bench --json prints: "), read.error());
    }
}

TEST_CASE("what is wrong is named by row and field, with what it is and what is expected") {
    const auto error = [](const char* field, const Json& value) {
        Json json = bench_json(report());
        (json.contains(field) ? json : json["rows"][1])[field] = value;
        const std::string all = read_bench_json(dump(json), "a.json").error();
        return all.substr(all.find(": ") + 2);
    };
    CHECK(error("format", "kvjit.bench.9") == "field 'format' is 'kvjit.bench.9', expected kvjit.bench.1");
    CHECK(error("device", 7) == "field 'device' is 7, expected a text");
    CHECK(error("target", nullptr) == "field 'target' is null, expected a text");
    CHECK(error("rows", "none") == "field 'rows' is 'none', expected an array");
    CHECK(error("ms", "fast") == "row 2: field 'ms' is 'fast', expected a number above 0");
    CHECK(error("ms", 0) == "row 2: field 'ms' is 0, expected a number above 0");
    CHECK(error("share_of_reading", -0.5) == "row 2: field 'share_of_reading' is -0.5, expected a number from 0 on");
    CHECK(error("layers", 1.5) == "row 2: field 'layers' is 1.5, expected an integer above 0");
    CHECK(error("spec", Json::object()) == "row 2: field 'spec' is an object, expected a text");
    Json json = bench_json(report());
    json["rows"][0].erase("batch");
    CHECK(read_bench_json(dump(json), "a.json").error().ends_with("row 1: field 'batch' is missing, expected a text"));
    json["rows"][0] = 7;
    CHECK(read_bench_json(dump(json), "a.json").error().ends_with("row 1: field 'spec' is missing, expected a text"));
    CHECK(read_bench_json("{", "a.json").error().ends_with(": it is no JSON, or not all of it"));
}

}  // namespace
}  // namespace kvjit::tool
