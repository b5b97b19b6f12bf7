#include "call/call.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "support/guarded_buffer.h"

namespace kvjit::test {
namespace {

constexpr std::size_t kAlignment = 16;

}  // namespace

Allocate guarded_memory(Guard guard) {
    return [guard, pieces = std::make_shared<std::deque<GuardedBuffer>>()](std::size_t bytes) {
        const auto byte = static_cast<std::byte>(0x3c + pieces->size() % 4);
        pieces->emplace_back((bytes + kAlignment - 1) / kAlignment * kAlignment, guard);
        std::ranges::fill(pieces->back().bytes(), byte);
        return pieces->back().data();
    };
}

}  // namespace kvjit::test
