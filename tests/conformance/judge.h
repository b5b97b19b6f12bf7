// Is what a call wrote what the oracle computes, and did it write nothing else?
#pragma once

#include <string>
#include <vector>

#include "call/oracle.h"
#include "conformance/call.h"

namespace kvjit::test {

/// Largest |got - expected|, as a part of max|expected|, that passes (docs/semantics.md, section 9).
double tolerance_of(int t1);

/// Empty if |got - expected| <= tolerance * max(max|expected|, floor) everywhere and infinities agree; else what
/// differs where. NaN passes only where NaN is expected.
std::string compare_close(const std::string& name, const std::vector<double>& got, const std::vector<double>& expected,
                          double tolerance, double floor = 0);

/// Elements of `tensor` in row-major order.
std::vector<double> numbers_of(const Placed& tensor);

/// Compares everything that `call`, already run, could have touched. Empty if all is well.
std::string judge(const Call& call);

}  // namespace kvjit::test
