// Address space without memory behind it: pages appear when they are first written.
#pragma once

#include <cstddef>
#include <vector>

namespace kvjit::test {

class SparseMemory {
public:
    explicit SparseMemory(std::size_t bytes);
    SparseMemory(const SparseMemory&) = delete;
    SparseMemory& operator=(const SparseMemory&) = delete;
    ~SparseMemory();

    /// Whether there was room for it.
    bool exists() const { return data_ != nullptr; }
    std::byte* data() const { return data_; }

    /// Lets a GPU that the tests run on reach the pages that are in memory by now, those that were written or read, and
    /// no others. Once.
    void show_written();

private:
    std::size_t bytes_;
    std::byte* data_ = nullptr;
    std::vector<void*> shown_;
};

}  // namespace kvjit::test
