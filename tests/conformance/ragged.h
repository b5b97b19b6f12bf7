// Calls that property tests begin with.
#pragma once

#include <cstdint>
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

/// Attention specs that take every path: both types, all cache modes, quantised and not, even and odd groups.
const std::vector<std::string>& attention_specs();

}  // namespace kvjit::test
