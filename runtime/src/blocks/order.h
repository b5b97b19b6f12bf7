// The order of a call's moves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "blocks/nest.h"

namespace kvjit::rt {

/// A block: the cache's block whose id has this index; or the only block of the scratch memory.
struct Place {
    Seat seat;
    std::int64_t index = 0;

    bool operator==(const Place&) const = default;
};

struct Step {
    Place from, to;

    bool operator==(const Step&) const = default;
};

/// Groups of steps. The steps of a group run in order, with scratch memory of the group's own; groups run in any order.
class Order {
public:
    void begin_group() { begins_.push_back(steps_.size()); }
    void add(Place from, Place to) {
        steps_.push_back({from, to});
        has_scratch_ = has_scratch_ || to.seat == Seat::kScratch;
    }

    std::size_t groups() const { return begins_.size(); }
    std::span<const Step> group(std::size_t i) const {
        const std::size_t end = i + 1 < begins_.size() ? begins_[i + 1] : steps_.size();
        return std::span(steps_).subspan(begins_[i], end - begins_[i]);
    }
    std::size_t steps() const { return steps_.size(); }
    bool has_scratch() const { return has_scratch_; }

private:
    std::vector<Step> steps_;
    std::vector<std::size_t> begins_;
    bool has_scratch_ = false;
};

Order copy_order(std::int64_t count);
Order swap_order(std::int64_t count);
/// The order of moves that happen as if all at once; no block occurs twice in `to`.
Order move_order(std::span<const std::int64_t> from, std::span<const std::int64_t> to);

}  // namespace kvjit::rt
