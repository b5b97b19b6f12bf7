#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>

#include "table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

std::string number(double value, int digits) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

/// Three digits that count.
std::string rounded(double value) {
    const int digits = value >= 100 || value == 0 ? 0 : 2 - static_cast<int>(std::floor(std::log10(value)));
    return number(value, std::clamp(digits, 0, 6));
}

std::string percent(double share) {
    return number(100 * share, 0) + "%";
}

double tokens_per_second(const BenchRow& row) {
    return static_cast<double>(row.new_tokens) / row.measured.seconds.median;
}

std::vector<std::string> text_row(const BenchRow& row) {
    const Measurement& m = row.measured;
    return {row.batch,
            std::to_string(row.layers),
            rounded(1e3 * m.seconds.median),
            rounded(1e3 * m.seconds.p10) + " to " + rounded(1e3 * m.seconds.p90),
            rounded(tokens_per_second(row)),
            rounded(m.reading.each / 1e9),
            percent(m.reading.share),
            rounded(m.arithmetic.each / 1e9),
            percent(m.arithmetic.share)};
}

/// The median over the rows of a limit.
double typical(const BenchReport& report, Rate Measurement::* rate) {
    std::vector<double> limits;
    for (const BenchRow& row : report.rows) limits.push_back((row.measured.*rate).limit);
    return spread_of(std::move(limits)).median;
}

/// Of one spec: a table of its rows.
std::string table_of(const BenchReport& report, const std::string& spec) {
    std::vector<std::vector<std::string>> rows = {
        {"batch", "layers", "ms", "p10 to p90", "tokens/s", "GB/s", "of reading", "GFLOP/s", "of multiply-add"}};
    for (const BenchRow& row : report.rows) {
        if (row.spec == spec) rows.push_back(text_row(row));
    }
    return spec + "\n" + table_text(rows);
}

}  // namespace

std::string bench_text(const BenchReport& report) {
    std::string text =
        report.processor + ", " + std::to_string(report.threads) + (report.threads == 1 ? " thread" : " threads") +
        ", target " + report.target + "\nlimits, measured after each pass: reading memory " +
        rounded(typical(report, &Measurement::reading) / 1e9) + " GB/s, multiplying and adding float32 " +
        rounded(typical(report, &Measurement::arithmetic) / 1e9) + " GFLOP/s\n";
    std::vector<std::string> specs;
    for (const BenchRow& row : report.rows) {
        if (std::ranges::find(specs, row.spec) != specs.end()) continue;
        specs.push_back(row.spec);
        text += "\n" + table_of(report, row.spec);
    }
    return text + "\nA row is one call, on one layer; ms and shares are medians.\n";
}

Json bench_json(const BenchReport& report) {
    Json rows = Json::array();
    for (const BenchRow& row : report.rows) {
        const Measurement& m = row.measured;
        rows.push_back({{"spec", row.spec},
                        {"batch", row.batch},
                        {"layers", row.layers},
                        {"rounds", m.rounds},
                        {"ms", 1e3 * m.seconds.median},
                        {"ms_p10", 1e3 * m.seconds.p10},
                        {"ms_p90", 1e3 * m.seconds.p90},
                        {"tokens_per_second", tokens_per_second(row)},
                        {"bytes", m.bytes},
                        {"operations", m.operations},
                        {"bytes_per_second", m.reading.each},
                        {"read_limit", m.reading.limit},
                        {"share_of_reading", m.reading.share},
                        {"operations_per_second", m.arithmetic.each},
                        {"multiply_add_limit", m.arithmetic.limit},
                        {"share_of_multiply_add", m.arithmetic.share}});
    }
    return {{"format", kBenchFormat},
            {"processor", report.processor},
            {"threads", report.threads},
            {"target", report.target},
            {"rows", std::move(rows)}};
}

Result<std::vector<BenchFigure>> read_bench_json(const std::string& text, const std::string& name) {
    try {
        const Json json = Json::parse(text);
        if (const std::string format = json.at("format"); format != kBenchFormat) {
            return fail(in_quotes(name) + " has format " + in_quotes(format) + "; it takes " +
                        std::string(kBenchFormat));
        }
        std::vector<BenchFigure> figures;
        for (const Json& row : json.at("rows")) {
            figures.push_back(
                {row.at("spec"), row.at("batch"), row.at("ms"),
                 std::max(row.at("share_of_reading").get<double>(), row.at("share_of_multiply_add").get<double>())});
        }
        return figures;
    } catch (const Json::exception& error) {
        return fail(in_quotes(name) + " is not what kvjit bench --json prints: " + escaped(error.what()));
    }
}

}  // namespace kvjit::tool
