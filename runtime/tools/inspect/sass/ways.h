// Ways through a loop, by the work that they do.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace kvjit::tool::sass {

/// A loop's blocks, or parts of it that stand for several, as nodes. Without the ways back to the head it is acyclic.
struct LoopGraph {
    struct Weight {
        std::int64_t work, cost;
    };
    int head;
    std::function<std::vector<int>(int)> followers;  // in the loop
    std::function<Weight(int)> weigh;
};

struct Way {
    std::int64_t cost;
    std::vector<int> nodes;  // from the head on

    auto operator<=>(const Way&) const = default;
};

/// For each amount of work that a turn of the loop may do, the way that does it at the least cost.
std::map<std::int64_t, Way> cheapest_ways(const LoopGraph& graph);

}  // namespace kvjit::tool::sass
