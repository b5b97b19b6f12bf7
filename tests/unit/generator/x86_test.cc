// Features and levels of x86-64 CPUs: what is said of them, and their text.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <ostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "generator/target.h"

using namespace kvjit::gen;

namespace {

X86Features features_of(std::string_view text) {
    const auto features = parse_features(text);
    REQUIRE_MESSAGE(features.has_value(), text);
    return *features;
}

/// Any features, most often ones that no CPU has together.
X86Features random_features(std::mt19937_64& random) {
    X86Features features(random());
    for (std::size_t i = x86_features().size(); i < features.size(); ++i) features.reset(i);
    return features | level_features(1);
}

}  // namespace

TEST_CASE("CMake knows the features by the same names") {
    std::ifstream file(KVJIT_TARGET_NAMES);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::string start = "set(KVJIT_X86_FEATURES\n";
    const std::size_t at = text.find(start);
    REQUIRE(at != text.npos);
    std::istringstream listed(text.substr(at + start.size(), text.find(')', at) - at - start.size()));
    const std::vector<std::string> names{std::istream_iterator<std::string>(listed), {}};
    std::vector<std::string> known;
    for (const X86Feature& feature : x86_features()) known.emplace_back(feature.name);
    CHECK(names == known);
}

TEST_CASE("each feature is named once, and levels grow") {
    std::set<std::string_view> names;
    for (const X86Feature& feature : x86_features()) {
        CAPTURE(feature.name);
        CHECK(names.insert(feature.name).second);
        CHECK(feature.level >= 0);
        CHECK(feature.level <= static_cast<int>(x86_levels().size()));
    }
    for (int level = 1; level <= static_cast<int>(x86_levels().size()); ++level) {
        CHECK(consistent(level_features(level)) == level_features(level));
        CHECK((level_features(level - 1) & ~level_features(level)).none());
        CHECK(level_features(level) != level_features(level - 1));
    }
}

TEST_CASE("a level prints as its name; further features follow it") {
    for (const std::string_view level : x86_levels()) CHECK(print_features(features_of(level)) == level);
    CHECK(print_features(features_of("x86-64-v4-vnni+avx512bf16")) == "x86-64-v4-bf16");
    CHECK(print_features(features_of("x86-64-v3+gfni+avxvnni")) == "x86-64-v3+avxvnni+gfni");
    CHECK(print_features(features_of("x86-64-v2+avx+avx2")) == "x86-64-v2+avx+avx2");
    CHECK(has_feature(features_of("x86-64-v4-amx"), "avx512fp16"));
}

TEST_CASE("print and parse are inverse over what CPUs may have") {
    std::mt19937_64 random(20261122);
    MESSAGE("seed 20261122");
    for (int i = 0; i < 2000; ++i) {
        const X86Features features = consistent(random_features(random));
        CHECK(parse_features(print_features(features)) == features);
    }
}

TEST_CASE("what is consistent has all that it implies, and loses nothing when asked again") {
    std::mt19937_64 random(7);
    MESSAGE("seed 7");
    for (int i = 0; i < 500; ++i) {
        const X86Features given = random_features(random), kept = consistent(given);
        CHECK((kept & ~given).none());
        CHECK(consistent(kept) == kept);
        CHECK(kept[0] == given[0]);  // cmov implies nothing
    }
    X86Features masked = features_of("x86-64-v4");
    for (std::size_t i = 0; i < x86_features().size(); ++i) masked[i] = masked[i] && x86_features()[i].name != "f16c";
    CHECK(!has_feature(consistent(masked), "avx512bw"));
    CHECK(has_feature(consistent(masked), "avx2"));
}

TEST_CASE("text that names no features is none") {
    for (const char* text : {"", "+avx", "x86-64-v5", "x86-64-v3+", "x86-64-v3+avx512", "x86-64-v3 +avx512f",
                             "x86-64+avx512f", "x86-64-v3+amx-int8", "native"}) {
        CAPTURE(text);
        CHECK(!parse_features(text).has_value());
    }
}

TEST_CASE("a machine runs what lacks nothing that it lacks") {
    CHECK(missing_feature(features_of("x86-64-v3"), features_of("x86-64-v4")).empty());
    CHECK(missing_feature(features_of("x86-64-v4"), features_of("x86-64-v3")) == "avx512f");
    CHECK(missing_feature(features_of("x86-64-v3+gfni"), features_of("x86-64-v4")) == "gfni");
}

TEST_CASE("a mask names features, none of them x86-64's own") {
    CHECK(parse_mask("avx512f") == (features_of("x86-64-v3+avx512f") & ~features_of("x86-64-v3")));
    CHECK(parse_mask("gfni,avxvnni") == (features_of("x86-64-v3+avxvnni+gfni") & ~features_of("x86-64-v3")));
    for (const char* text : {"", "sse2", "avx512", "avx,", ",avx", "avx, fma", "x86-64-v4"}) {
        CAPTURE(text);
        CHECK(!parse_mask(text).has_value());
    }
    // What implies a feature goes with it.
    const X86Features without = consistent(features_of("x86-64-v4-amx") & ~*parse_mask("avx512f"));
    CHECK(print_features(without) == "x86-64-v3+amx-tile+amx-bf16+amx-int8");
}

TEST_CASE("tuning goes by features") {
    CHECK(tuning_cpu(features_of("x86-64")) == "generic");
    CHECK(tuning_cpu(features_of("x86-64-v3")) == "haswell");
    CHECK(tuning_cpu(features_of("x86-64-v3+sse4a")) == "znver3");
    CHECK(tuning_cpu(features_of("x86-64-v4-bf16+sse4a")) == "znver4");
    CHECK(tuning_cpu(features_of("x86-64-v4+avx512vnni")) == "skylake-avx512");
    CHECK(tuning_cpu(features_of("x86-64-v4-vnni")) == "icelake-server");
    CHECK(tuning_cpu(features_of("x86-64-v4-amx")) == "sapphirerapids");
}

TEST_CASE("products of bfloat16 are AMD's with AVX-512, whatever else there is") {
    const auto multiplies = [](const char* name) { return named_target(name, {}).value().multiplies_bfloat16(); };
    CHECK(multiplies("x86-64-v4-bf16+sse4a"));
    CHECK(multiplies("x86-64-v4-amx+sse4a"));
    CHECK_FALSE(multiplies("x86-64-v4-bf16"));
    CHECK_FALSE(multiplies("x86-64-v4-vnni+sse4a"));
    CHECK_FALSE(multiplies("x86-64-v3+sse4a"));
}

TEST_CASE("targets of equal features are equal, whatever they were called") {
    CHECK(*named_target("x86-64-v4+avx512bf16+avx512vbmi+avx512vnni") == *named_target("x86-64-v4-bf16"));
    CHECK(named_target("x86-64-v4-amx")->name() == "x86-64-v4-amx");
    CHECK(named_target("x86-64-v4+avx512vnni")->text() == "x86_64-unknown-linux-gnu:x86-64-v4+avx512vnni");
}
