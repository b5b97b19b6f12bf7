#include "inspect/sass/loops.h"

#include <algorithm>
#include <map>

namespace kvjit::tool::sass {
namespace {

using Numbers = std::vector<int>;

/// Which blocks lead to which, and through which all ways from the entry pass.
class Flow {
public:
    explicit Flow(const Code& code) : code_(code), before_(code.size()), dominators_(code.size()) {
        for (int number = 0; number < size(); ++number) {
            for (const int follower : followers(number)) before_[at(follower)].push_back(number);
        }
        reach();
        for (const int number : reached_) dominators_[at(number)] = std::vector<bool>(code.size(), number != 0);
        if (!code.empty()) dominators_[0][0] = true;
        while (refine()) {
        }
    }

    /// The blocks that are reached at all, in the order of their numbers.
    const Numbers& reached() const { return reached_; }
    const Numbers& followers(int number) const { return code_[at(number)].followers; }

    bool dominates(int head, int number) const { return dominators_[at(number)][at(head)]; }

    /// Adds the blocks from which `end` is reached without passing the head.
    void add_body(int head, int end, std::set<int>& body) const {
        body.insert(head);
        Numbers rest = {end};
        while (!rest.empty()) {
            const int number = rest.back();
            rest.pop_back();
            if (!body.insert(number).second) continue;
            std::ranges::copy_if(before_[at(number)], std::back_inserter(rest),
                                 [&](int each) { return is_reached(each); });
        }
    }

private:
    static std::size_t at(int number) { return static_cast<std::size_t>(number); }
    int size() const { return static_cast<int>(code_.size()); }
    bool is_reached(int number) const { return !dominators_[at(number)].empty(); }

    void reach() {
        std::set<int> reached;
        Numbers rest(code_.empty() ? 0 : 1, 0);
        while (!rest.empty()) {
            const int number = rest.back();
            rest.pop_back();
            if (reached.insert(number).second) std::ranges::copy(followers(number), std::back_inserter(rest));
        }
        reached_.assign(reached.begin(), reached.end());
    }

    /// Takes from each block's dominators those that don't dominate all blocks before it. Whether there were any.
    bool refine() {
        bool has_changed = false;
        for (const int number : reached_) {
            if (number == 0) continue;
            std::vector<bool>& of = dominators_[at(number)];
            for (int each = 0; each < size(); ++each) {
                if (!of[at(each)] || each == number || dominates_all(each, before_[at(number)])) continue;
                of[at(each)] = false;
                has_changed = true;
            }
        }
        return has_changed;
    }

    bool dominates_all(int head, const Numbers& numbers) const {
        return std::ranges::all_of(numbers, [&](int each) { return !is_reached(each) || dominates(head, each); });
    }

    const Code& code_;
    std::vector<Numbers> before_;
    Numbers reached_;
    std::vector<std::vector<bool>> dominators_;  // of each block; of one that is not reached nothing
};

/// Sets each loop's smallest loop around it.
void nest(std::vector<Loop>& loops) {
    for (Loop& loop : loops) {
        for (std::size_t place = 0; place < loops.size(); ++place) {
            const Loop& other = loops[place];
            if (other.blocks.size() <= loop.blocks.size() || !std::ranges::includes(other.blocks, loop.blocks))
                continue;
            const bool is_smaller =
                loop.around < 0 || other.blocks.size() < loops[static_cast<std::size_t>(loop.around)].blocks.size();
            if (is_smaller) loop.around = static_cast<int>(place);
        }
    }
}

}  // namespace

std::vector<Loop> find_loops(const Code& code) {
    const Flow flow(code);
    std::map<int, std::set<int>> bodies;  // by head
    for (const int number : flow.reached()) {
        for (const int head : flow.followers(number)) {
            if (flow.dominates(head, number)) flow.add_body(head, number, bodies[head]);
        }
    }
    std::vector<Loop> loops;
    for (auto& [head, blocks] : bodies) loops.push_back({.head = head, .blocks = std::move(blocks)});
    nest(loops);
    return loops;
}

}  // namespace kvjit::tool::sass
