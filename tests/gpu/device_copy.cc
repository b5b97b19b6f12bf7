#include "gpu/device_copy.h"

namespace kvjit::test {

DeviceCopy::~DeviceCopy() {
    for (const Piece& piece : pieces_) machine_.release(piece.memory);
}

void* DeviceCopy::put(std::size_t piece, const void* data, std::size_t bytes) {
    if (piece == pieces_.size()) pieces_.push_back({machine_.allocate(bytes), bytes});
    machine_.upload(at(piece), data, bytes);
    return at(piece);
}

std::vector<std::byte> DeviceCopy::download(std::size_t piece) const {
    std::vector<std::byte> now(pieces_[piece].bytes);
    machine_.download(now.data(), at(piece), now.size());
    return now;
}

}  // namespace kvjit::test
