#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "table.h"

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

/// "61% of 16.8", of 1e9 a second.
std::string share_text(const Rate& rate) {
    return number(100 * rate.share, 0) + "% of " + rounded(rate.limit / 1e9);
}

double tokens_per_second(const BenchRow& row) {
    return static_cast<double>(row.new_tokens) / row.measured.seconds.median;
}

/// "1.02 to 1.05", of three digits after the point.
std::string times_text(const Spread& times) {
    return number(times.p10, 3) + " to " + number(times.p90, 3);
}

std::vector<std::string> text_row(const BenchRow& row) {
    const Measurement& m = row.measured;
    std::vector<std::string> words = {row.batch, std::to_string(row.layers), rounded(1e3 * m.seconds.median),
                                      rounded(1e3 * m.seconds.p10) + " to " + rounded(1e3 * m.seconds.p90)};
    if (m.rival) {
        const Rival& rival = *m.rival;
        words.insert(words.end(),
                     {rounded(1e3 * rival.seconds.median), number(rival.times.median, 3), times_text(rival.times)});
    }
    words.insert(words.end(), {rounded(tokens_per_second(row)), rounded(m.reading.each / 1e9), share_text(m.reading),
                               rounded(m.arithmetic.each / 1e9), share_text(m.arithmetic)});
    return words;
}

std::vector<std::string> headings(bool has_rival) {
    std::vector<std::string> words = {"batch", "layers", "ms", "p10 to p90"};
    if (has_rival) words.insert(words.end(), {"against, ms", "times", "times' p10 to p90"});
    words.insert(words.end(), {"tokens/s", "GB/s", "of reading", "GFLOP/s"});
    return words;
}

/// Of one spec: a table of its rows.
std::string table_of(const BenchReport& report, const std::string& spec) {
    std::vector<std::vector<std::string>> rows = {headings(!report.against.empty())};
    for (const BenchRow& row : report.rows) {
        if (row.spec != spec) continue;
        if (rows.size() == 1) rows[0].push_back("of " + row.arithmetic);  // the same in all rows of a spec
        rows.push_back(text_row(row));
    }
    return spec + "\n" + table_text(rows);
}

void add_rival(Json& row, const Rival& rival) {
    row["against_ms"] = 1e3 * rival.seconds.median;
    row["times"] = rival.times.median;
    row["times_p10"] = rival.times.p10;
    row["times_p90"] = rival.times.p90;
}

}  // namespace

std::string bench_text(const BenchReport& report) {
    std::string text = report.device + ", target " + report.target + "\n";
    std::vector<std::string> specs;
    for (const BenchRow& row : report.rows) {
        if (std::ranges::find(specs, row.spec) != specs.end()) continue;
        specs.push_back(row.spec);
        text += "\n" + table_of(report, row.spec);
    }
    text +=
        "\nA row is one call, on one layer. Rates are of the median time. Limits were measured in turns with the "
        "calls;\nshares are medians of turns.\n";
    if (!report.against.empty())
        text += "Against: the same calls with kernels of the templates in " + report.against +
                ", in turns; times: a call's\ntime over theirs, the median of turns.\n";
    return text + report.notes;
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
                        {"arithmetic", row.arithmetic},
                        {"operations_per_second", m.arithmetic.each},
                        {"multiply_add_limit", m.arithmetic.limit},
                        {"share_of_multiply_add", m.arithmetic.share}});
        if (m.rival) add_rival(rows.back(), *m.rival);
    }
    Json json = {{"format", kBenchFormat},
                 {"device", report.device},
                 {"target", report.target},
                 {"notes", report.notes},
                 {"rows", std::move(rows)}};
    if (!report.against.empty()) json["against"] = report.against;
    return json;
}

}  // namespace kvjit::tool
