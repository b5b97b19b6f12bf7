// The four operations on two models, held against the oracle.
#pragma once

#include "cache_model.h"

namespace kvjit::test {

/// What calls are given: for host memory alone, and where a GPU's takes part.
struct How {
    BlocksOptions host, cuda;

    const BlocksOptions& of(const CacheModel& a, const CacheModel& b) const;
};

/// Copies from the first to the second and within the first, moves within the second, swaps between the two and within
/// the first, zeroes some of the first: random blocks, any number of them. All bytes that the models have are
/// afterwards what the oracle says.
void check_operations(CacheModel& first, CacheModel& second, const How& how, Rng& random);

}  // namespace kvjit::test
