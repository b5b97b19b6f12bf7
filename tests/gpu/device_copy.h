// What a test has in host memory, as kernels see it: in the machine's memory.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/machine.h"

namespace kvjit::test {

/// Pieces of memory, by numbers from 0 on. A piece keeps its place, whatever is put there, as an engine's arrays do.
class DeviceCopy {
public:
    explicit DeviceCopy(Machine& machine) : machine_(machine) {}
    ~DeviceCopy();
    DeviceCopy(const DeviceCopy&) = delete;
    DeviceCopy& operator=(const DeviceCopy&) = delete;

    /// Where the piece lies. The first time it takes as much memory as it has bytes then; later there are no more.
    void* put(std::size_t piece, const void* data, std::size_t bytes);
    void* at(std::size_t piece) const { return pieces_[piece].memory; }
    /// What lies there now.
    std::vector<std::byte> download(std::size_t piece) const;

private:
    struct Piece {
        void* memory;
        std::size_t bytes;
    };
    Machine& machine_;
    std::vector<Piece> pieces_;
};

}  // namespace kvjit::test
