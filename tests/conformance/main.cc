// Conformance tests. Beside doctest's options:
//     --seed N       another random array of cases (default 1)
//     --cases N      how many of them (default 240; KVJIT_CONFORMANCE_CASES sets the default)
//     --strength N   2: cover pairs of levels (default); 3: triples, for long runs with --cases 4000
//     --shard I/N    only every Nth case, from the Ith on
//     --target NAME  where they run (default host): what kvjit_target_create takes and this process can give memory to
//     --case K       only case K: what a failure prints
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "conformance/options.h"
#include "gpu_access.h"
#include "support/guarded_buffer.h"

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
    } else if (name == "--target") {
        chosen.target = value;
        return chosen.target.empty() ? Taken::kBad : Taken::kGood;
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

void show_pages(void* pages, std::size_t bytes) {
    tool::show_to_gpu(pages, bytes);
}
void hide_pages(void* pages, std::size_t) {
    tool::hide_from_gpu(pages);
}

}  // namespace

const Options& options() {
    return chosen;
}

constexpr int kNoGpu = 77;  // what test drivers take for "skipped"

/// Calls' memory becomes the GPU's too where they run on one. False: there is none, which is said.
bool reach_target() {
    if (const auto opened = tool::open_gpu(chosen.target); !opened) {
        std::fprintf(stderr, "SKIP: %s\n", opened.error().c_str());
        return false;
    }
    set_page_hooks(show_pages, hide_pages);
    return true;
}

}  // namespace kvjit::test

int main(int argc, char** argv) {
    if (!kvjit::test::read_options(argc, argv)) {
        std::fputs(
            "usage: [--seed N] [--cases N | --case K] [--strength 2|3] [--shard I/N] [--target NAME] [doctest "
            "options]\n",
            stderr);
        return 2;
    }
    if (!kvjit::test::reach_target()) return kvjit::test::kNoGpu;
    doctest::Context context(argc, argv);
    if (kvjit::test::options().only >= 0) context.addFilter("test-case", "random calls*");
    return context.run();
}
