#include "compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace kvjit::tool {
namespace {

std::string number_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", number);
    return text;
}

std::string mismatch_text(const Label& name, const Tensor& got, const Tensor& expected, std::int64_t at) {
    return name.place(expected.shape(), at) + " is " + number_text(got.number(at)) + ", expected " +
           number_text(expected.number(at));
}

/// Counts elements for which `same` is false.
template <class Same>
Verdict count_mismatches(const Label& name, const Tensor& got, const Tensor& expected, Same same) {
    Region wrong(expected.shape());
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < expected.size(); ++i) {
        if (same(i)) continue;
        if (wrong.count() == 0) first = i;
        wrong.add(i);
    }
    if (wrong.count() == 0) return {};
    return {false, 0,
            mismatch_text(name, got, expected, first) + "; " + std::to_string(wrong.count()) + " of " +
                std::to_string(expected.size()) + " elements differ, none may: " + wrong.text(name)};
}

double largest_finite(const Tensor& tensor) {
    double largest = 0;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const double magnitude = std::fabs(tensor.number(i));
        if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    return largest;
}

/// |got - expected|; where either is not finite: 0 if they are the same, else infinite.
double distance(double got, double expected) {
    if (std::isfinite(got) && std::isfinite(expected)) return std::fabs(got - expected);
    const bool same = got == expected || (std::isnan(got) && std::isnan(expected));
    return same ? 0 : std::numeric_limits<double>::infinity();
}

/// The largest error of all elements, relative to max(max|expected|, floor), and where it is.
struct Worst {
    double relative = 0;
    std::int64_t at = 0;
    double reference = 0;  // that maximum; 0 where no element is off
};

Worst worst_of(const Tensor& got, const Tensor& expected, double floor) {
    double worst = 0;
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < expected.size(); ++i) {
        const double error = distance(got.number(i), expected.number(i));
        if (error > worst) at = i;
        worst = std::max(worst, error);
    }
    if (worst == 0) return {};
    const double reference = std::max(largest_finite(expected), floor);
    return {worst / reference, at, reference};
}

}  // namespace

void Verdict::join(const Verdict& other) {
    if (pass && !other.pass) detail = other.detail;
    pass = pass && other.pass;
    error = std::max(error, other.error);
}

double tolerance(kvjit_dtype t1) {
    return t1 == KVJIT_F32 ? 1e-5 : t1 == KVJIT_F16 ? 2e-3 : t1 == KVJIT_BF16 ? 1.6e-2 : 0;
}

Verdict compare_bytes(const Label& name, const Tensor& got, const Tensor& expected) {
    const auto width = static_cast<std::int64_t>(element_bytes(expected.dtype()));
    return count_mismatches(name, got, expected, [&](std::int64_t i) {
        return std::equal(got.bytes().begin() + i * width, got.bytes().begin() + (i + 1) * width,
                          expected.bytes().begin() + i * width);
    });
}

Verdict compare_exactly(const Label& name, const Tensor& got, const Tensor& expected) {
    Verdict verdict = count_mismatches(name, got, expected, [&](std::int64_t i) {
        const double a = got.number(i);
        const double b = expected.number(i);
        return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
    });
    if (!verdict.pass) verdict.error = worst_of(got, expected, 0).relative;
    return verdict;
}

Verdict compare_closely(const Label& name, const Tensor& got, const Tensor& expected, double tolerance, double floor) {
    const Worst worst = worst_of(got, expected, floor);
    if (worst.relative <= tolerance) return {true, worst.relative, ""};
    Region wrong(expected.shape());
    for (std::int64_t i = 0; i < expected.size(); ++i) {
        const bool is_off = distance(got.number(i), expected.number(i)) > tolerance * worst.reference;
        if (is_off || i == worst.at) wrong.add(i);  // the worst one is, however the product was rounded
    }
    return {false, worst.relative,
            mismatch_text(name, got, expected, worst.at) + "; off by " + number_text(worst.relative) +
                " of the largest, " + number_text(tolerance) + " is allowed; " + std::to_string(wrong.count()) +
                " of " + std::to_string(expected.size()) + " are off by more: " + wrong.text(name)};
}

}  // namespace kvjit::tool
