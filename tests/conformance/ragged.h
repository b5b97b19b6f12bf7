// Calls that property tests begin with, and the check that they share.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "conformance/call.h"

namespace kvjit::test {

/// A spec from its text; the test fails if it is a bad one.
kvjit_spec spec_of(const std::string& text);
/// Names of all fields that a spec has.
std::set<std::string> spec_fields();
/// A field's value in a spec's canonical text; "" where it has its default.
std::string value_of(const std::string& text, const std::string& field);

/// A batch of five sequences of all lengths.
Case ragged(const std::string& spec);

/// A call that was run without an error.
Call ran(const Case& which, std::uint64_t data_seed, std::uint64_t placement_seed);

/// Runs the call on what its tensors hold now, whatever a test has changed in them since they were made, and judges it:
/// the test fails where kvjit refuses the call, where a result isn't the oracle's, and where anything else was written.
/// The failure describes the call, so that a test captures only what that doesn't show.
void check_against_oracle(Call& call);
/// The same of one call of many, drawn by the command line's seed and strength, which go on where it fails. `which`:
/// the arguments that choose it.
void check_drawn(const Call& call, const std::string& which);
/// The same of a new call, which is returned for what else a test looks at.
Call check_against_oracle(const Case& which, std::uint64_t data_seed, std::uint64_t placement_seed);

/// The first seed, counted up from `first`, that `fits`: for tests that need a random call with some property. After
/// kSeedTries seeds the test fails and says where the search began: a property that calls no longer have would keep it
/// running for ever.
inline constexpr std::uint64_t kSeedTries = 1000;
std::uint64_t find_seed(std::uint64_t first, const std::function<bool(std::uint64_t seed)>& fits);

/// Attention specs that take every path: both types, all cache modes, quantised and not, even and odd groups.
const std::vector<std::string>& attention_specs();

}  // namespace kvjit::test
