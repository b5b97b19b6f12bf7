// Includes nothing of the C++ library: its inline functions would be compiled for this machine's instruction set, and
// might then be the ones that the whole program uses.
#include "plain_row.h"

#include <float.h>
#include <math.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace demo {
namespace {

constexpr std::int64_t kDim = 128, kGroup = 8, kPage = 128;  // Shape's: plain.cc holds them to it

float to_float(kvjit::half number) {
#if defined(__F16C__)
    return _cvtsh_ss(number.bits());
#else
    return number;
#endif
}

std::int64_t slot_of(const PlainRow& row, std::int64_t t) {
    return row.pages[t / kPage] + t % kPage;
}

float score(const float* query, const std::int8_t* codes, const kvjit::half* scales) {
    float sum = 0;
    for (std::int64_t g = 0; g < kDim / kGroup; ++g) {
        float part = 0;
        for (std::int64_t d = g * kGroup; d < (g + 1) * kGroup; ++d) part += query[d] * static_cast<float>(codes[d]);
        sum += part * to_float(scales[g]);
    }
    return sum;
}

/// Scores become their exponentials. Returns the sum of these.
float exponentiate(float* scores, std::int64_t keys) {
    float largest = -FLT_MAX, sum = 0;
    for (std::int64_t t = 0; t < keys; ++t) largest = scores[t] > largest ? scores[t] : largest;
    for (std::int64_t t = 0; t < keys; ++t) scores[t] = expf(scores[t] - largest);
    for (std::int64_t t = 0; t < keys; ++t) sum += scores[t];
    return sum;
}

void add_value(float* sums, float weight, const std::int8_t* codes, const kvjit::half* scales) {
    for (std::int64_t g = 0; g < kDim / kGroup; ++g) {
        const float factor = weight * to_float(scales[g]);
        for (std::int64_t d = g * kGroup; d < (g + 1) * kGroup; ++d) sums[d] += factor * static_cast<float>(codes[d]);
    }
}

}  // namespace

void attend_plain_row(const PlainRow& row) {
    float query[kDim], sums[kDim] = {};
    for (std::int64_t d = 0; d < kDim; ++d) query[d] = to_float(row.query[d]) / sqrtf(kDim);
    for (std::int64_t t = 0; t < row.keys; ++t) {
        const std::int64_t slot = slot_of(row, t);
        row.scores[t] = score(query, row.key_codes + slot * kDim, row.key_scales + slot * (kDim / kGroup));
    }
    const float divisor = exponentiate(row.scores, row.keys);
    for (std::int64_t t = 0; t < row.keys; ++t) {
        const std::int64_t slot = slot_of(row, t);
        add_value(sums, row.scores[t], row.value_codes + slot * kDim, row.value_scales + slot * (kDim / kGroup));
    }
    for (std::int64_t d = 0; d < kDim; ++d) row.output[d] = kvjit::half(sums[d] / divisor);
}

}  // namespace demo
