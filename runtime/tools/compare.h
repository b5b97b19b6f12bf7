// Compares outputs with recorded ones.
#pragma once

#include <string>

#include "label.h"
#include "tensor.h"

namespace kvjit::tool {

/// The verdict on one output or, joined, on all outputs of a call.
struct Verdict {
    bool pass = true;
    double error = 0;    // the largest, relative to the tolerance's reference; 0 of codes, which are no quantities
    std::string detail;  // of the first failure: tensor, position, got, expected

    /// Keeps the first failure's detail and the worst error. A NaN error is the worst of all.
    void join(const Verdict& other);
};

/// Largest |got - expected| that passes, as a part of max|expected| (docs/semantics.md, section 9).
double tolerance(kvjit_dtype t1);

/// Byte for byte: codes, and slots that the call must not touch.
Verdict compare_bytes(const Label& name, const Tensor& got, const Tensor& expected);

/// The same value in every element; any NaN equals any NaN.
Verdict compare_exactly(const Label& name, const Tensor& got, const Tensor& expected);

/// |got - expected| <= tolerance * max(max|expected|, floor) over all elements. Infinities must be the same ones, and
/// NaN fails unless NaN was recorded. floor > 0 serves lse, a logarithm: its absolute error is the relative error
/// of the sum, however close to 0 the logarithm itself lies.
Verdict compare_closely(const Label& name, const Tensor& got, const Tensor& expected, double tolerance,
                        double floor = 0);

}  // namespace kvjit::tool
