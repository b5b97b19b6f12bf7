#include "inspect/sass/ways.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kvjit::tool::sass {
namespace {

using Ways = std::map<std::int64_t, Way>;

/// Appends the node and those reached from it, each before those that lead to it.
void visit(const LoopGraph& graph, int node, std::set<int>& done, std::vector<int>& order) {
    for (const int each : graph.followers(node)) {
        if (done.insert(each).second) visit(graph, each, done, order);
    }
    order.push_back(node);
}

std::vector<int> order_of(const LoopGraph& graph) {
    std::set<int> done = {graph.head};
    std::vector<int> order;
    visit(graph, graph.head, done, order);
    std::ranges::reverse(order);
    return order;
}

Ways extended(const Ways& ways, int node, LoopGraph::Weight weight) {
    Ways longer;
    for (const auto& [work, way] : ways) {
        Way& with = longer[work + weight.work] = {way.cost + weight.cost, way.nodes};
        with.nodes.push_back(node);
    }
    return longer;
}

void keep_best(Ways& kept, const Ways& ways) {
    for (const auto& [work, way] : ways) {
        const auto [place, is_new] = kept.emplace(work, way);
        if (!is_new) place->second = std::min(place->second, way);
    }
}

}  // namespace

Ways cheapest_ways(const LoopGraph& graph) {
    std::map<int, Ways> best = {{graph.head, {{0, {}}}}};
    Ways ends;
    for (const int node : order_of(graph)) {
        const Ways ways = extended(best[node], node, graph.weigh(node));
        best.erase(node);  // its ways are in its followers'
        for (const int each : graph.followers(node)) keep_best(each == graph.head ? ends : best[each], ways);
    }
    return ends;
}

}  // namespace kvjit::tool::sass
