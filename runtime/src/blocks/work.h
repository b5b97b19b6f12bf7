// What a call has to do, once all is checked: for the CPU's threads or the GPU's driver.
#pragma once

#include "blocks/cache.h"
#include "blocks/ids.h"
#include "blocks/order.h"

namespace kvjit::rt {

/// Of one share of the blocks. Blocks that are zeroed have no other steps: the order is empty, and `second` has them.
struct BlockWork {
    BlockShare share;
    std::span<const std::int64_t> first, second;  // ids; of blocks that are zeroed only the second
    const Order* order;                           // null: the second ones are zeroed

    /// Where one of the caches has a block.
    std::int64_t address(Place place) const {
        const auto i = static_cast<std::size_t>(place.index);
        return place.seat == Seat::kFirst ? share.first.address(first[i]) : share.second.address(second[i]);
    }
    /// Independent of each other.
    std::size_t groups() const { return order != nullptr ? order->groups() : second.size(); }
    /// Bytes that are written, scratch memory included.
    std::int64_t bytes() const {
        const std::size_t blocks = order != nullptr ? order->steps() : second.size();
        return static_cast<std::int64_t>(blocks) * share.nest.bytes();
    }
};

}  // namespace kvjit::rt
