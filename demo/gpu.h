#pragma once

#include <map>
#include <string>

#include "cuda_driver.h"
#include "memory.h"

namespace demo {

/// A GPU and its managed memory: blocks move between GPU and host when the other one touches them.
class Gpu final : public Memory {
public:
    /// Makes the GPU's primary context this thread's. Throws where there is no such GPU, or where its memory can't move
    /// by pages.
    explicit Gpu(int ordinal);

    void* take(std::size_t bytes) override;
    void give_back(void* block) noexcept override;
    void settle() override;
    std::size_t free_bytes() const override;

    /// "NVIDIA H200, 132 multiprocessors, L2 cache 60 MB".
    std::string headline() const;
    /// Bytes a second, read ones and written ones, of copies within its memory: the yardstick for decode, as ReadLoop
    /// is on a CPU.
    double measure_copies();

private:
    int attribute(int which) const;

    CudaDriver driver_;
    int device_ = 0;
    std::map<void*, std::size_t> blocks_;  // and their bytes
};

}  // namespace demo
