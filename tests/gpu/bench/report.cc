#include "gpu/bench/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kvjit::bench {
namespace {

constexpr char kOurselves[] = "kvjit";

/// Of the row, by the median; 0 where it says nothing.
double gigabytes_a_second(const Row& row) {
    return row.bytes / median(row.microseconds) / 1e3;
}
double teraflops(const Row& row) {
    return row.operations / median(row.microseconds) / 1e6;
}
double of_limit(const Row& row) {
    const double work = row.bytes != 0 ? row.bytes : row.operations;
    return row.limits.empty() ? 0 : 1e6 * work / median(row.microseconds) / median(row.limits);
}

/// A number in its column, or blanks for 0.
void print_number(std::FILE* to, const char* format, int width, double number) {
    char text[32] = "";
    if (number != 0) std::snprintf(text, sizeof text, format, number);
    std::fprintf(to, "  %*s", width, text);
}

std::string plain(double number) {
    char text[32];
    std::snprintf(text, sizeof text, number < 100 ? "%.2f" : "%.0f", number);
    return text;
}

void append(std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

double median(std::vector<double> samples) {
    if (samples.empty()) return 0;
    std::ranges::sort(samples);
    const std::size_t half = samples.size() / 2;
    return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

void Report::add(const Row& row) {
    for (Row& known : rows_) {
        if (known.group != row.group || known.shape != row.shape || known.what != row.what || known.by != row.by)
            continue;
        append(known.microseconds, row.microseconds);
        append(known.limits, row.limits);
        return;
    }
    rows_.push_back(row);
}

double Report::best_peer(const Row& row) const {
    double best = 0;
    for (const Row& other : rows_) {
        if (other.by == kOurselves || other.group != row.group || other.shape != row.shape) continue;
        const double time = median(other.microseconds);
        best = best == 0 ? time : std::min(best, time);
    }
    return best;
}

nlohmann::json Report::row_json(const Row& row) const {
    nlohmann::json out = {{"group", row.group},
                          {"shape", row.shape},
                          {"what", row.what},
                          {"by", row.by},
                          {"samples_us", row.microseconds},
                          {"us", median(row.microseconds)},
                          {"bytes", row.bytes},
                          {"operations", row.operations},
                          {"limits_a_second", row.limits}};
    if (row.bytes != 0) out["gb_s"] = gigabytes_a_second(row);
    if (!row.limits.empty()) out["of_limit"] = of_limit(row);
    if (row.operations != 0) out["tflop_s"] = teraflops(row);
    const double peer = row.by == kOurselves ? best_peer(row) : 0;
    if (peer != 0) out["speed_of_best_peer"] = peer / median(row.microseconds);
    return out;
}

nlohmann::json Report::json() const {
    nlohmann::json rows = nlohmann::json::array();
    for (const Row& row : rows_) rows.push_back(row_json(row));
    return {{"machine", notes_}, {"rows", rows}, {"skipped", skipped_}, {"failed", failed_}};
}

void Report::merge(const nlohmann::json& other) {
    const auto join = [&](const char* name, std::map<std::string, std::string>& to) {
        for (const auto& [key, value] : other.at(name).items()) to[key] = value.get<std::string>();
    };
    join("machine", notes_);
    join("skipped", skipped_);
    join("failed", failed_);
    for (const nlohmann::json& row : other.at("rows")) {
        add({row.at("group"), row.at("shape"), row.at("what"), row.at("by"), row.at("samples_us"),
             row.value("bytes", 0.0), row.value("operations", 0.0),
             row.value("limits_a_second", std::vector<double>())});
    }
}

void Report::print_row(std::FILE* to, const Row& row) const {
    const double time = median(row.microseconds);
    const double slowest = *std::ranges::max_element(row.microseconds);
    const double fastest = *std::ranges::min_element(row.microseconds);
    const double peer = row.by == kOurselves ? best_peer(row) : 0;
    std::fprintf(to, "%-14s  %-24s  %-24s  %-12s  %10s  %4.0f%%", row.group.c_str(), row.shape.c_str(),
                 row.what.c_str(), row.by.c_str(), plain(time).c_str(), 100 * (slowest - fastest) / time);
    print_number(to, "%.0f", 6, row.bytes != 0 ? gigabytes_a_second(row) : 0);
    print_number(to, "%.2f", 8, of_limit(row));
    print_number(to, "%.0f", 7, row.operations != 0 ? teraflops(row) : 0);
    print_number(to, "%.2f", 7, peer / time);
    std::fputc('\n', to);
}

void Report::print(std::FILE* to) const {
    for (const auto& [name, value] : notes_) std::fprintf(to, "%s: %s\n", name.c_str(), value.c_str());
    std::fprintf(to, "\n%-14s  %-24s  %-24s  %-12s  %10s  %5s  %6s  %8s  %7s  %7s\n", "group", "shape", "what", "by",
                 "us", "range", "GB/s", "of limit", "TFLOP/s", "of peer");
    for (const Row& row : rows_) print_row(to, row);
    for (const auto& [what, why] : skipped_) std::fprintf(to, "SKIP %s: %s\n", what.c_str(), why.c_str());
    for (const auto& [what, why] : failed_) std::fprintf(to, "FAILED %s: %s\n", what.c_str(), why.c_str());
}

}  // namespace kvjit::bench
