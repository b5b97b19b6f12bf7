#include "tally.h"

#include <cstdio>

#include "terminal.h"

namespace demo {
namespace {

/// Pairs of a query row and a key that it sees.
double visible_pairs(std::int64_t start, std::int64_t rows) {
    return static_cast<double>(rows) * (static_cast<double>(start) + (static_cast<double>(rows) + 1) / 2);
}

double milliseconds(double seconds, std::int64_t steps) {
    return seconds / static_cast<double>(steps) * 1e3;
}

void print_head(const char* name, const Tally& tally) {
    const double step = milliseconds(tally.seconds(), tally.steps);
    std::printf("  %-20s %4lld steps of %.*f ms, planning %.3f ms of it\n", name, static_cast<long long>(tally.steps),
                step < 1 ? 3 : 1, step, milliseconds(tally.plan_seconds, tally.steps));
}

void print_decode(const Tally& tally, const Yardstick& yardstick) {
    if (tally.steps == 0) return;
    print_head("all decoding", tally);
    std::printf("  %-20s %.0f tokens/s", "", static_cast<double>(tally.decoded) / tally.seconds());
    if (const double best = yardstick.bytes_a_second; best > 0) {
        const double rate = tally.bytes / tally.run_seconds;
        std::printf("; keys and values are read at %.1f GB/s, %.0f%% of what %s %s", rate / 1e9, 100 * rate / best,
                    yardstick.who, yardstick.does);
    }
    std::printf("\n");
}

void print_mixed(const Tally& tally, const Yardstick& yardstick) {
    if (tally.steps == 0) return;
    print_head("some prefilling", tally);
    std::printf("  %-20s %.0f tokens/s prefilled and %.0f tokens/s decoded in the same calls", "",
                static_cast<double>(tally.prefilled) / tally.seconds(),
                static_cast<double>(tally.decoded) / tally.seconds());
    if (yardstick.bytes_a_second > 0) {
        std::printf("; prefill %.0f GFLOP/s", tally.prefill_operations / tally.run_seconds / 1e9);
    }
    std::printf("\n");
}

void print_yardstick(const Yardstick& yardstick) {
    if (yardstick.bytes_a_second > 0) {
        std::printf("  %-20s %.1f GB/s: %s, before and after the steps\n\n", yardstick.who,
                    yardstick.bytes_a_second / 1e9, yardstick.how);
    } else {
        std::printf("  %-20s %s\n\n", yardstick.who, yardstick.how);
    }
}

}  // namespace

void Tally::add(const RaggedBatch& batch, std::int64_t layers) {
    ++steps;
    for (std::int64_t b = 0; b < batch.sequences(); ++b) {
        const std::int64_t rows = batch.seqstarts[b + 1] - batch.seqstarts[b];
        bytes += static_cast<double>(layers * batch.keys(b) * Shape::kTokenBytes);
        if (b < batch.decoding) {
            ++decoded;
        } else {
            prefilled += rows;
            prefill_operations += 4.0 * Shape::kHeadDim * Shape::kHeads * static_cast<double>(layers) *
                                  visible_pairs(batch.start_pos[b], rows);
        }
    }
}

void print_tallies(const Tally& decode_only, const Tally& mixed, std::int64_t layers, const Yardstick& yardstick) {
    std::printf("%s (attention of %lld layers; nothing else of the model)\n", bold("Steps").c_str(),
                static_cast<long long>(layers));
    print_decode(decode_only, yardstick);
    print_mixed(mixed, yardstick);
    print_yardstick(yardstick);
}

}  // namespace demo
