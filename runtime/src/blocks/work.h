// What a checked call has to do, for the CPU's threads or the GPU's driver.
#pragma once

#include "blocks/cache.h"
#include "blocks/ids.h"
#include "blocks/order.h"

namespace kvjit::rt {

/// The work on one share of the blocks. To zero blocks there is no order: `second` names them.
struct BlockWork {
    BlockShare share;
    std::span<const std::int64_t> first, second;  // ids; to zero blocks only the second
    const Order* order;                           // null: zeroes the second ones

    /// The address of a block.
    std::int64_t address(Place place) const {
        const auto i = static_cast<std::size_t>(place.index);
        return place.seat == Seat::kFirst ? share.first.address(first[i]) : share.second.address(second[i]);
    }
    /// The number of groups, which are independent of each other.
    std::size_t groups() const { return order != nullptr ? order->groups() : second.size(); }
    /// Bytes that are written, scratch memory included.
    std::int64_t bytes() const {
        const std::size_t blocks = order != nullptr ? order->steps() : second.size();
        return static_cast<std::int64_t>(blocks) * share.nest.bytes();
    }
};

}  // namespace kvjit::rt
