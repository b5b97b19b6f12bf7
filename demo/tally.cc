#include "tally.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "terminal.h"

namespace demo {
namespace {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

template <class Figure>
double median_of(const Timings& timings, const Figure& figure) {
    std::vector<double> values;
    for (const Timing& timing : timings) values.push_back(figure(timing));
    return median(std::move(values));
}

double seconds_of(const Timings& timings) {
    return median_of(timings, [](const Timing& timing) { return timing.seconds; });
}

std::string milliseconds(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f ms", seconds < 1e-3 ? 3 : seconds < 1e-2 ? 2 : 1, seconds * 1e3);
    return text;
}

std::string in_words(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string percent(double part) {
    return in_words("%.1f%%", 100 * part);
}

/// "5.1 of 20.1 GB/s, 25%".
std::string of_limit(const Timings& timings, const char* unit) {
    const double rate = median_of(timings, [](const Timing& timing) { return timing.work / timing.seconds; });
    const double limit = median_of(timings, [](const Timing& timing) { return timing.limit; });
    if (limit == 0) return in_words("%.1f ", rate / 1e9) + unit + ", no limit measured";
    const double part =
        median_of(timings, [](const Timing& timing) { return timing.work / timing.seconds / timing.limit; });
    return in_words("%.1f of ", rate / 1e9) + in_words("%.1f ", limit / 1e9) + unit + in_words(", %.0f%%", 100 * part);
}

/// "78.1 ms, 6.4x" of another way to do it; "" where it was not run.
std::string beside(const Timings& timings, double Timing::* other) {
    const double seconds = median_of(timings, [=](const Timing& timing) { return timing.*other; });
    if (seconds == 0) return "";
    const double ratio = median_of(timings, [=](const Timing& timing) { return timing.*other / timing.seconds; });
    return milliseconds(seconds) + in_words(", %.1fx", ratio);
}

struct Row {
    const char* name;
    std::string time, share, rate, plain, peer;
};

void print_row(const Row& row) {
    char line[160];
    std::snprintf(line, sizeof line, "    %-9s %10s %7s   %-30s %-17s %s", row.name, row.time.c_str(),
                  row.share.c_str(), row.rate.c_str(), row.plain.c_str(), row.peer.c_str());
    const std::string text(line);
    std::printf("%s\n", text.substr(0, text.find_last_not_of(' ') + 1).c_str());
}

void print_program(const char* name, const Timings& timings, const char* unit, double share) {
    if (timings.empty()) return;
    print_row({name, milliseconds(seconds_of(timings)), percent(share), of_limit(timings, unit),
               beside(timings, &Timing::plain_seconds), beside(timings, &Timing::peer_seconds)});
}

/// A line for each program, with its share of what they take together.
void print_programs(const Tally& tally, const Scope& scope) {
    if (tally.store.empty()) return;
    const double planning = median(tally.plan_seconds), layers = static_cast<double>(scope.layers);
    const double sum =
        planning + layers * (seconds_of(tally.store) + seconds_of(tally.decode) + seconds_of(tally.prefill));
    const auto share = [=](const Timings& timings) { return layers * seconds_of(timings) / sum; };
    print_row({"", "one layer", "share", "rate and its limit", scope.beside_others ? "plain loops" : "", scope.peer});
    print_row({"planning", milliseconds(planning), percent(planning / sum), "(once for all layers)", "", ""});
    print_program("store", tally.store, "GB/s", share(tally.store));
    print_program("decode", tally.decode, "GB/s", share(tally.decode));
    print_program("prefill", tally.prefill, "GFLOP/s", share(tally.prefill));
}

/// Seconds of the timings' work at the machine's limit; infinity where that isn't known.
double seconds_at_limit(const Timings& timings) {
    return median_of(timings, [](const Timing& timing) { return timing.work / timing.limit; });
}

void print_step(const char* kind, const Tally& tally, const Scope& scope, double step) {
    std::printf("  %lld steps, %s: %s for %s", static_cast<long long>(tally.steps), kind, milliseconds(step).c_str(),
                Shape::part(scope.layers).c_str());
    const double best =
        static_cast<double>(scope.layers) *
        (seconds_at_limit(tally.store) + seconds_at_limit(tally.decode) + seconds_at_limit(tally.prefill));
    if (best > 0 && std::isfinite(best)) std::printf(", at the limits %s", milliseconds(best).c_str());
}

void print_tally(const char* kind, const Tally& tally, const Scope& scope) {
    if (tally.steps == 0) return;
    std::vector<double> steps = tally.run_seconds;
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] += tally.plan_seconds[i];
    const double all = std::accumulate(steps.begin(), steps.end(), 0.0), step = median(std::move(steps));
    print_step(kind, tally, scope, step);
    std::printf("; %.0f tokens/s decoded", static_cast<double>(tally.decoded) / all);
    if (tally.prefilled != 0) std::printf(", %.0f prefilled", static_cast<double>(tally.prefilled) / all);
    std::printf("\n");
    print_programs(tally, scope);
}

void print_others(const std::string& peer) {
    std::printf(
        "  Plain loops: float32, compiled with -O3 -march=native, as many threads; 2x: they take"
        " twice as long.\n");
    if (peer.empty()) {
        std::printf(
            "  PyTorch is not installed (pip install torch); its scaled_dot_product_attention would stand beside"
            " them.\n");
    } else {
        std::printf("  %s: scaled_dot_product_attention, dense keys and values in float32, as many threads.\n",
                    peer.c_str());
    }
}

}  // namespace

void Tally::add(const RaggedBatch& batch, double planning, double running) {
    ++steps;
    decoded += batch.decoding;
    prefilled += batch.new_tokens() - batch.seqstarts[batch.decoding];
    plan_seconds.push_back(planning);
    run_seconds.push_back(running);
}

void print_tallies(const Tally& decode_only, const Tally& mixed, const Scope& scope) {
    print_tally("all decode", decode_only, scope);
    print_tally("some prefill", mixed, scope);
    std::printf(
        "\n  Times are medians.%s\n  %s\n",
        mixed.store.empty() && decode_only.store.empty() ? "" : " Programs are timed one by one, after their step.",
        scope.limits.c_str());
    if (scope.beside_others) print_others(scope.peer);
    std::printf("\n");
}

}  // namespace demo
