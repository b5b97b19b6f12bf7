#include "conformance/covering.h"

#include <unordered_set>

#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr int kCandidates = 24;
using Combination = std::uint64_t;  // factor numbers and levels, eight bits each
using Seen = std::unordered_set<Combination>;

/// Case number `turn`. The operators take turns: by their combinations alone, those with few factors would hardly be
/// chosen.
Levels random_levels(Rng& rng, int turn) {
    Levels levels;
    for (const Factor& factor : factors()) levels.push_back(static_cast<int>(rng.below(factor.levels)));
    levels[0] = turn % factors()[0].levels;
    normalise(levels);
    return levels;
}

/// Calls visit with each combination of `strength` relevant factors of `levels`, from factor `first` on.
template <class Visit>
void for_each_combination(const Levels& levels, int strength, std::size_t first, Combination prefix, Visit& visit) {
    if (strength == 0) return visit(prefix);
    for (std::size_t i = first; i < levels.size(); ++i) {
        if (levels[i] == kIrrelevant) continue;
        const auto pair = static_cast<Combination>(i) << 8 | static_cast<Combination>(levels[i]);
        for_each_combination(levels, strength - 1, i + 1, prefix << 16 | pair, visit);
    }
}

std::size_t count_new(const Levels& levels, int strength, const Seen& seen) {
    std::size_t fresh = 0;
    auto visit = [&](Combination combination) { fresh += seen.count(combination) == 0; };
    for_each_combination(levels, strength, 0, 0, visit);
    return fresh;
}

void add(const Levels& levels, int strength, Seen& seen) {
    auto visit = [&](Combination combination) { seen.insert(combination); };
    for_each_combination(levels, strength, 0, 0, visit);
}

}  // namespace

std::vector<Levels> covering_array(std::uint64_t seed, int strength, int count) {
    Rng rng(seed);
    Seen seen;
    std::vector<Levels> cases;
    while (static_cast<int>(cases.size()) < count) {
        Levels best;
        std::size_t most = 0;
        for (int i = 0; i < kCandidates; ++i) {
            Levels candidate = random_levels(rng, static_cast<int>(cases.size()));
            const std::size_t fresh = count_new(candidate, strength, seen);
            if (best.empty() || fresh > most) best = candidate, most = fresh;
        }
        add(best, strength, seen);
        cases.push_back(std::move(best));
    }
    return cases;
}

double coverage(const std::vector<Levels>& cases, std::uint64_t seed, int strength) {
    Seen covered;
    for (const Levels& levels : cases) add(levels, strength, covered);
    Rng rng(~seed);
    Seen possible = covered;
    for (int i = 0; i < 4000; ++i) add(random_levels(rng, i), strength, possible);
    return static_cast<double>(covered.size()) / static_cast<double>(possible.size());
}

}  // namespace kvjit::test
