#include "blocks/order.h"

#include <algorithm>
#include <utility>

namespace kvjit::rt {
namespace {

constexpr Place first(std::int64_t i) {
    return {Seat::kFirst, i};
}
constexpr Place second(std::int64_t i) {
    return {Seat::kSecond, i};
}
constexpr Place kScratch = {Seat::kScratch};

/// Moves as a graph: a move's successor is the one, if any, that overwrites what it reads. A move has at most one
/// successor and any number of predecessors, and a chain of successors ends or runs into a cycle.
class MoveGraph {
public:
    MoveGraph(std::span<const std::int64_t> from, std::span<const std::int64_t> to)
        : next_(from.size(), kNone), waits_for_(from.size(), 0), stays_(from.size(), false) {
        std::vector<std::pair<std::int64_t, std::size_t>> writers;
        for (std::size_t i = 0; i < to.size(); ++i) {
            stays_[i] = from[i] == to[i];
            if (!stays_[i]) writers.emplace_back(to[i], i);
        }
        std::ranges::sort(writers);
        for (std::size_t i = 0; i < from.size(); ++i) {
            const auto writer = std::ranges::lower_bound(writers, std::pair(from[i], std::size_t{0}));
            if (stays_[i] || writer == writers.end() || writer->first != from[i]) continue;
            next_[i] = writer->second;
            ++waits_for_[writer->second];
        }
    }

    Order order() {
        Order order;
        for (const std::vector<std::size_t>& moves : sorted_parts()) add(moves, order);
        return order;
    }

private:
    static constexpr std::size_t kNone = SIZE_MAX;

    /// Moves that depend on each other, each list ordered so that a read precedes its overwrite, except for the list's
    /// last moves, which are its cycle if it has one.
    std::vector<std::vector<std::size_t>> sorted_parts() {
        std::vector<std::size_t> ready = free_moves();
        std::vector<std::vector<std::size_t>> parts;
        const std::vector<std::size_t> part = parts_of(parts);
        for (std::size_t at = 0; at < ready.size(); ++at) {
            const std::size_t move = ready[at], next = next_[move];
            parts[part[move]].push_back(move);
            if (next != kNone && --waits_for_[next] == 0) ready.push_back(next);
        }
        for (std::size_t i = 0; i < next_.size(); ++i) add_cycle(i, part, parts);
        return parts;
    }

    std::vector<std::size_t> free_moves() const {
        std::vector<std::size_t> free;
        for (std::size_t i = 0; i < next_.size(); ++i) {
            if (!stays_[i] && waits_for_[i] == 0) free.push_back(i);
        }
        return free;
    }

    /// The index of each move's part, and an empty list for each part: chains that end, or meet a cycle, at one move.
    std::vector<std::size_t> parts_of(std::vector<std::vector<std::size_t>>& parts) const {
        std::vector<std::size_t> part(next_.size(), kNone);
        std::vector<std::size_t> path;
        for (std::size_t i = 0; i < next_.size(); ++i) {
            if (stays_[i]) continue;
            path.clear();
            std::size_t at = i;
            for (; at != kNone && part[at] == kNone; at = next_[at]) {
                part[at] = parts.size();  // for now: marks it as visited by this path
                path.push_back(at);
            }
            const std::size_t found = at == kNone ? parts.size() : part[at];
            for (const std::size_t move : path) part[move] = found;
            if (found == parts.size()) parts.emplace_back();
        }
        return part;
    }

    /// Adds the cycle that move i is on, if its moves still wait for each other.
    void add_cycle(std::size_t i, const std::vector<std::size_t>& part, std::vector<std::vector<std::size_t>>& parts) {
        for (std::size_t at = i; waits_for_[at] != 0; at = next_[at]) {
            waits_for_[at] = 0;
            parts[part[at]].push_back(at);
        }
    }

    /// The last move of a part with a cycle reads what an earlier one overwrites: that block is saved first.
    void add(const std::vector<std::size_t>& moves, Order& order) const {
        order.begin_group();
        const std::size_t last = moves.back();
        const bool turns = next_[last] != kNone;
        if (turns) order.add(first(static_cast<std::int64_t>(last)), kScratch);
        for (const std::size_t move : moves) {
            const auto index = static_cast<std::int64_t>(move);
            order.add(turns && move == last ? kScratch : first(index), second(index));
        }
    }

    std::vector<std::size_t> next_;
    std::vector<std::size_t> waits_for_;  // for how many moves
    std::vector<bool> stays_;             // source and destination are one: nothing is moved
};

}  // namespace

Order copy_order(std::int64_t count) {
    Order order;
    for (std::int64_t i = 0; i < count; ++i) {
        order.begin_group();
        order.add(first(i), second(i));
    }
    return order;
}

Order swap_order(std::int64_t count) {
    Order order;
    for (std::int64_t i = 0; i < count; ++i) {
        order.begin_group();
        order.add(first(i), kScratch);
        order.add(second(i), first(i));
        order.add(kScratch, second(i));
    }
    return order;
}

Order move_order(std::span<const std::int64_t> from, std::span<const std::int64_t> to) {
    return MoveGraph(from, to).order();
}

}  // namespace kvjit::rt
