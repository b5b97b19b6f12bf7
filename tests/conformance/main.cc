// Conformance tests. Beside doctest's options:
//     --seed N       another random array of cases (default 1)
//     --cases N      how many of them (default 240; KVJIT_CONFORMANCE_CASES sets the default)
//     --strength N   2: cover pairs of levels (default); 3: triples, for long runs with --cases 4000
//     --shard I/N    only every Nth case, from the Ith on
//     --case K       only case K: what a failure prints
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "conformance/options.h"

namespace kvjit::test {
namespace {

Options chosen;

/// Whether `name` is one of ours, and if so whether `value` could be read.
enum class Taken { kNotOurs, kGood, kBad };

Taken take(std::string_view name, const char* value) {
    char* end = nullptr;
    const auto number = [&] { return std::strtoull(value, &end, 10); };
    if (name == "--seed") {
        chosen.seed = number();
    } else if (name == "--cases") {
        chosen.cases = static_cast<int>(number());
    } else if (name == "--case") {
        chosen.only = static_cast<int>(number());
    } else if (name == "--strength") {
        chosen.strength = static_cast<int>(number());
    } else if (name == "--shard") {
        return std::sscanf(value, "%d/%d", &chosen.shard, &chosen.shards) == 2 ? Taken::kGood : Taken::kBad;
    } else {
        return Taken::kNotOurs;
    }
    return end != value && *end == '\0' ? Taken::kGood : Taken::kBad;
}

bool read_options(int argc, char** argv) {
    if (const char* cases = std::getenv("KVJIT_CONFORMANCE_CASES")) chosen.cases = std::atoi(cases);
    for (int i = 1; i < argc; ++i) {
        const Taken taken = take(argv[i], i + 1 < argc ? argv[i + 1] : "");
        if (taken == Taken::kBad) return false;
        if (taken == Taken::kGood) ++i;
    }
    return chosen.shards > 0 && (chosen.strength == 2 || chosen.strength == 3);
}

}  // namespace

const Options& options() {
    return chosen;
}

}  // namespace kvjit::test

int main(int argc, char** argv) {
    if (!kvjit::test::read_options(argc, argv)) {
        std::fputs("usage: [--seed N] [--cases N | --case K] [--strength 2|3] [--shard I/N] [doctest options]\n",
                   stderr);
        return 2;
    }
    doctest::Context context(argc, argv);
    if (kvjit::test::options().only >= 0) context.addFilter("test-case", "random calls*");
    return context.run();
}
