// Differential test: random calls, each against the oracle.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/call.h"
#include "conformance/covering.h"
#include "conformance/options.h"
#include "conformance/ragged.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::test {
namespace {

void check_case(const Levels& levels, int k) {
    const std::uint64_t seed = options().seed * 1'000'003 + static_cast<std::uint64_t>(k);
    check_drawn(make_call(case_of(levels), seed, seed + 1), "--case " + std::to_string(k));
}

TEST_CASE("random calls agree with the oracle") {
    const Options& chosen = options();
    const int count = chosen.only >= 0 ? chosen.only + 1 : chosen.cases;
    const std::vector<Levels> cases = covering_array(chosen.seed, chosen.strength, count);
    std::printf("seed %llu: %d cases cover about %.0f%% of all combinations of %d levels\n",
                static_cast<unsigned long long>(chosen.seed), count,
                100 * coverage(cases, chosen.seed, chosen.strength), chosen.strength);
    std::fflush(stdout);
    for (int k = 0; k < count; ++k) {
        if (chosen.takes(k)) check_case(cases[static_cast<std::size_t>(k)], k);
    }
}

/// Fields that no kernel serves with another value than the default.
const std::set<std::string> kNotYet = {"value_head_dim"};

TEST_CASE("the sweep varies every field of a spec") {
    std::set<std::string> fields = spec_fields();
    // Relayouts have random cases of their own.
    std::erase_if(fields, [](const std::string& name) { return name.starts_with("to_"); });
    std::map<std::string, std::set<std::string>> values;
    for (const Factor& factor : factors()) CHECK_MESSAGE(factor.levels > 1, "a factor without levels: " << factor.name);
    for (const Levels& levels : covering_array(7, 2, 100)) {
        KernelSpec spec;
        static_cast<kvjit_spec&>(spec) = case_of(levels).spec;
        const auto text = spec.text();
        REQUIRE(text);
        for (const std::string& name : fields) values[name].insert(value_of(*text, name));
    }
    for (const std::string& name : fields) {
        CHECK_MESSAGE((values[name].size() > 1) != kNotYet.contains(name), name);
    }
}

TEST_CASE("cases are what their levels say, and legal") {
    for (const Levels& levels : covering_array(7, 2, 50)) {
        Levels again = levels;
        normalise(again);
        CHECK(again == levels);
    }
}

}  // namespace
}  // namespace kvjit::test
