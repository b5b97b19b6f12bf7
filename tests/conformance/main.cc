// Conformance tests. Beside doctest's options:
//     --seed N       another random array of cases (default 1)
//     --cases N      how many of them (default 240; KVJIT_CONFORMANCE_CASES sets the default)
//     --strength N   2: cover pairs of levels (default); 3: triples, for long runs with --cases 4000
//     --shard I/N    only every Nth case, from the Ith on
//     --target NAME  where they run (default host): what kvjit_target_create takes and this process can give memory to
//     --bundle FILE  kernels that are not compiled
//     --case K       only case K: what a failure prints; of the test that -tc= names, else of "random calls agree
//                    with the oracle"
//     --full         every pair, where tests take some of many
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "conformance/options.h"
#include "conformance/run_call.h"
#include "gpu_access.h"
#include "handles.h"
#include "support/guarded_buffer.h"
#include "terminal.h"

namespace kvjit::test {
namespace {

Options chosen;
std::string refusal;      // of the first argument that can't be taken
bool names_test = false;  // by doctest's own option

constexpr int kMaxCases = 1'000'000;
constexpr std::uint64_t kMaxSeed = std::numeric_limits<std::uint64_t>::max();

void refuse(std::string_view name, std::string_view value, const std::string& expected) {
    if (!refusal.empty()) return;
    refusal = std::string(name) + " is '" + tool::escaped(value) + "', expected " + expected;
}

/// Reads all of `text` as a number from `low` to `high`.
template <class T>
bool read_number(std::string_view text, T low, T high, T& number) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    return status == std::errc{} && end == text.data() + text.size() && number >= low && number <= high;
}

template <class T>
void take_number(std::string_view name, std::string_view value, T low, T high, T& number) {
    if (read_number(value, low, high, number)) return;
    refuse(name, value, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
}

void take_shard(std::string_view value) {
    const std::size_t slash = std::min(value.find('/'), value.size());
    const bool read = read_number(value.substr(0, slash), 0, kMaxCases, chosen.shard) && slash < value.size() &&
                      read_number(value.substr(slash + 1), 1, kMaxCases, chosen.shards);
    if (!read || chosen.shard >= chosen.shards) refuse("--shard", value, "I/N with I from 0 to N - 1");
}

constexpr std::array<std::string_view, 7> kNames = {"--seed",  "--cases",  "--case",  "--strength",
                                                    "--shard", "--target", "--bundle"};

void take(std::string_view name, std::string_view value) {
    if (name == "--seed") take_number<std::uint64_t>(name, value, 0, kMaxSeed, chosen.seed);
    if (name == "--cases") take_number(name, value, 1, kMaxCases, chosen.cases);
    if (name == "--case") take_number(name, value, 0, kMaxCases - 1, chosen.only);
    if (name == "--strength") take_number(name, value, 2, 3, chosen.strength);
    if (name == "--shard") take_shard(value);
    if (name == "--target") chosen.target = value;
    if (name == "--bundle") chosen.bundle = value;
}

/// Beginnings of those of doctest's long options that are of use here; its short ones have one dash.
constexpr std::array<std::string_view, 9> kDoctest = {"--help",    "--version",  "--test-",  "--source-", "--list-",
                                                      "--success", "--duration", "--abort-", "--no-"};

bool is_doctest(std::string_view argument) {
    if (!argument.starts_with("--")) return argument.starts_with('-');
    return std::ranges::any_of(kDoctest, [&](std::string_view start) { return argument.starts_with(start); });
}

/// What doctest doesn't know, it ignores, and a test that was asked for is not the one that ran.
void read_options(std::span<char* const> arguments) {
    if (const char* cases = std::getenv("KVJIT_CONFORMANCE_CASES")) {
        take_number("KVJIT_CONFORMANCE_CASES", cases, 1, kMaxCases, chosen.cases);
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        const std::string_view name = argument.substr(0, argument.find('='));
        const bool ours = std::ranges::find(kNames, name) != kNames.end();
        names_test = names_test || argument.starts_with("-tc=") || argument.starts_with("--test-case=");
        if (argument == "--full") {
            chosen.full = true;
        } else if (ours && name.size() < argument.size()) {
            take(name, argument.substr(name.size() + 1));
        } else if (ours) {
            take(name, ++i < arguments.size() ? arguments[i] : "");
        } else if (!is_doctest(argument)) {
            refuse("an argument", argument, "an option");
        }
    }
    if (chosen.only < 0 && chosen.shard >= chosen.cases) {
        refuse("--shard", std::to_string(chosen.shard) + "/" + std::to_string(chosen.shards),
               "one that has any of " + std::to_string(chosen.cases) + " cases");
    }
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

void refuse_target(const std::string& why) {
    refusal = "--target: " + why;
}

/// Asked first, or each test that calls a kernel would find out. A build without the CPU's compiler lacks the default
/// target, too, but not the tests that call no kernel.
void check_target() {
    if (chosen.target == Options().target) return;
    const auto target = tool::open_target(chosen.target);
    if (!target) return refuse_target(target.error());
    if (const auto tried = tool::try_target(shared_engine(), target->get()); !tried) refuse_target(tried.error());
}

void take_bundle() {
    if (chosen.bundle.empty()) return;
    kvjit_error error;
    kvjit_error_init(&error);
    if (kvjit_engine_add_bundle(shared_engine(), chosen.bundle.c_str(), &error) == KVJIT_OK) return;
    refusal = error_text("--bundle", error);
}

int refused() {
    std::fprintf(stderr,
                 "kvjit_conformance: %s\n"
                 "usage: [--seed N] [--cases N | --case K] [--strength 2|3] [--shard I/N] [--target NAME] "
                 "[--bundle FILE] [--full] [doctest options]\n",
                 refusal.c_str());
    return 2;
}

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
    using namespace kvjit;
    test::read_options({argv + 1, argv + argc});
    if (!test::refusal.empty()) return test::refused();
    if (!test::reach_target()) return test::kNoGpu;
    test::check_target();
    test::take_bundle();
    if (!test::refusal.empty()) return test::refused();
    doctest::Context context(argc, argv);
    if (test::options().only >= 0 && !test::names_test) context.addFilter("test-case", "random calls agree*");
    return context.run();
}
