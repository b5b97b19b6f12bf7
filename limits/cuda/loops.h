// What a GPU can do at all: loops that only read its memory, and that only multiply and add in registers. The
// yardsticks of what is bound by memory or by arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "limits/cuda/gpu.h"
#include "limits/cuda/loops_ptx.h"

namespace kvjit::limits {

class CudaLoops;

/// One of them: a kernel on all multiprocessors, with rounds for about a millisecond, so that launching counts little.
class CudaLoop {
public:
    /// Puts one launch on the stream.
    void enqueue(const gpu::Stream& stream) const;
    /// What a launch does: bytes read, or floating-point operations, a multiply-add counted as two.
    double work() const { return work_each_round_ * parameters_.rounds; }
    /// Launches it; work a second.
    double measure(const gpu::Stream& stream) const;

private:
    friend class CudaLoops;
    CudaLoop(void* kernel, unsigned blocks, const LoopParameters& parameters, double work_each_round);
    void choose_rounds();
    double seconds(const gpu::Stream& stream) const;

    void* kernel_;
    unsigned blocks_;
    LoopParameters parameters_;
    double work_each_round_;
};

/// The loops, on one GPU. Throws std::runtime_error where the driver refuses. The GPU, which is this thread's, outlives
/// them.
class CudaLoops {
public:
    explicit CudaLoops(const gpu::Gpu& gpu);

    /// Bytes of device memory: so many that L2 can't keep them.
    const CudaLoop& read() const { return read_; }
    /// float32.
    const CudaLoop& multiply_add() const { return multiply_add_; }
    /// float16, summed in float32, in tensor cores by mma.sync, which kvjit's kernels use: GPUs from sm_90 on have
    /// instructions that are faster. Factors are always the same ones, so that clocks stay higher than with a
    /// program's.
    const CudaLoop& multiply_matrices() const { return multiply_matrices_; }

private:
    LoopParameters parameters() const;

    unsigned blocks_;
    std::uint32_t turns_;
    gpu::Library library_;
    gpu::DeviceMemory memory_, sums_;
    CudaLoop read_, multiply_add_, multiply_matrices_;
};

}  // namespace kvjit::limits
