// A covering array: few cases that together hold every combination of levels of any `strength` factors.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/case.h"

namespace kvjit::test {

/// `count` cases, greedily chosen so that each adds as many new combinations as possible; the levels of the first
/// factor (the operator) take turns. The same seed gives the same
/// list, and a longer list begins with the shorter one.
std::vector<Levels> covering_array(std::uint64_t seed, int strength, int count);

/// The part of the combinations that `cases` hold, of those found in many random cases: an estimate from 0 to 1.
double coverage(const std::vector<Levels>& cases, std::uint64_t seed, int strength);

}  // namespace kvjit::test
