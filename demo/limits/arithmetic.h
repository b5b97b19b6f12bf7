#pragma once

namespace demo {

/// Floating-point operations a second, a multiply-add counted as two, of threads that do nothing else: float32 in
/// registers, with the widest vectors that the machine has. The yardstick for prefill. Throws as run_together does.
double measure_arithmetic(int threads);

}  // namespace demo
