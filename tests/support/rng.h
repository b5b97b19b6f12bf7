// The tests' random numbers.
#pragma once

#include "calls/rng.h"

namespace kvjit::test {

using calls::Rng;

}  // namespace kvjit::test
