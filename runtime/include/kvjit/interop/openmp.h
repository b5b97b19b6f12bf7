// kvjit's work on a program's OpenMP threads. C++17, header-only, depends on kvjit.hpp and OpenMP: compile and link
// with -fopenmp (OpenMP::OpenMP_CXX).
#ifndef KVJIT_INTEROP_OPENMP_H
#define KVJIT_INTEROP_OPENMP_H

#if !defined(_OPENMP)
#error "kvjit/interop/openmp.h takes OpenMP: compile with -fopenmp"
#endif

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "kvjit/cpp/executor.hpp"

namespace kvjit::interop::openmp {

/// An executor on `threads` OpenMP threads, the caller included; 0: on as many as omp_get_max_threads() says now. Each
/// stage of a run is a parallel region of the thread that calls kvjit_run. So the program's threads are the only ones
/// on their cores, and if OpenMP keeps them awake (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME), kvjit finds them
/// so. Inside of a parallel region it has one thread, unless OpenMP allows nested ones. Threads need stacks of 1 MiB
/// (OMP_STACKSIZE). Runs of several threads at once are regions of several threads.
inline Executor executor(int threads = 0) {
    const int team = std::max(1, threads > 0 ? threads : omp_get_max_threads());
    return {team, [team](std::int64_t count, Task task) {
#pragma omp parallel for schedule(dynamic) num_threads(team)
                for (std::int64_t i = 0; i < count; ++i) task(i);
            }};
}

}  // namespace kvjit::interop::openmp

#endif
