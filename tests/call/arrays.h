// The tests' names of made-up calls' arrays.
#pragma once

#include "call/oracle.h"
#include "calls/arrays.h"
#include "support/rng.h"

namespace kvjit::test {

using calls::BlockMemory, calls::CallShape, calls::dense_tensor, calls::even_shape, calls::IndexArrays, calls::Numbers,
    calls::parse_spec, calls::Place;

}  // namespace kvjit::test
