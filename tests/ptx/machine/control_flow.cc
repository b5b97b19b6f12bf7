#include "ptx/machine/control_flow.h"

#include <algorithm>

namespace kvjit::ptx {
namespace {

/// Basic blocks by number; the last number is the kernel's end, to which no instruction belongs.
class Graph {
public:
    Graph(const std::vector<Instruction>& instructions, Handler end) : instructions_(instructions), end_(end) {
        find_blocks();
        for (u32 block = 0; block < starts_.size(); ++block) add_edges(block);
    }

    u32 exit() const { return static_cast<u32>(starts_.size()); }
    u32 start(u32 block) const { return starts_[block]; }
    /// Where the block goes: one or two blocks, or exit().
    const std::vector<u32>& successors(u32 block) const { return successors_[block]; }
    u32 last(u32 block) const {
        return (block + 1 < starts_.size() ? starts_[block + 1] : static_cast<u32>(instructions_.size())) - 1;
    }

private:
    void find_blocks() {
        std::vector<bool> is_start(instructions_.size() + 1, false);
        is_start[0] = true;
        for (std::size_t i = 0; i < instructions_.size(); ++i) {
            const Instruction& in = instructions_[i];
            if (in.is_branch) is_start[in.target] = true;
            if (in.is_branch || in.execute == end_) is_start[i + 1] = true;
        }
        block_of_.resize(instructions_.size());
        for (std::size_t i = 0; i < instructions_.size(); ++i) {
            if (is_start[i]) starts_.push_back(static_cast<u32>(i));
            block_of_[i] = static_cast<u32>(starts_.size() - 1);
        }
    }

    void add_edges(u32 block) {
        std::vector<u32>& to = successors_.emplace_back();
        const u32 at = last(block);
        const Instruction& in = instructions_[at];
        const bool always = !in.is_guarded;
        if (in.is_branch) to.push_back(block_of_[in.target]);
        if (in.execute == end_) to.push_back(exit());
        if ((in.is_branch || in.execute == end_) && always) return;
        to.push_back(at + 1 < instructions_.size() ? block_of_[at + 1] : exit());
    }

    const std::vector<Instruction>& instructions_;
    Handler end_;
    std::vector<u32> starts_, block_of_;
    std::vector<std::vector<u32>> successors_;
};

/// Immediate post-dominators, by Cooper, Harvey and Kennedy's iteration from the exit on.
class PostDominators {
public:
    explicit PostDominators(const Graph& graph)
        : graph_(graph), order_(graph.exit() + 1, 0), of_(graph.exit() + 1, kNowhere) {
        predecessors_.resize(graph.exit() + 1);
        for (u32 block = 0; block < graph.exit(); ++block) {
            for (const u32 to : graph.successors(block)) predecessors_[to].push_back(block);
        }
        number_from_exit();
        of_[graph.exit()] = graph.exit();
        while (improve()) {
        }
    }

    /// kNowhere for a block from which no way leads to the exit.
    u32 of(u32 block) const { return of_[block]; }

private:
    /// Depth first without recursion: kernels have thousands of blocks.
    void number_from_exit() {
        std::vector<bool> seen(graph_.exit() + 1, false);
        std::vector<std::pair<u32, std::size_t>> stack = {{graph_.exit(), 0}};
        seen[graph_.exit()] = true;
        while (!stack.empty()) {
            auto& [block, next] = stack.back();
            if (next < predecessors_[block].size()) {
                const u32 to = predecessors_[block][next++];
                if (!seen[to]) stack.emplace_back(to, 0);
                seen[to] = true;
            } else {
                order_[block] = static_cast<u32>(finished_.size());
                finished_.push_back(block);
                stack.pop_back();
            }
        }
    }

    bool improve() {
        bool is_changed = false;
        for (auto block = finished_.rbegin() + 1; block != finished_.rend(); ++block) {
            u32 meeting = kNowhere;
            for (const u32 to : graph_.successors(*block)) {
                if (of_[to] != kNowhere) meeting = meeting == kNowhere ? to : meet(meeting, to);
            }
            is_changed = is_changed || of_[*block] != meeting;
            of_[*block] = meeting;
        }
        return is_changed;
    }

    u32 meet(u32 a, u32 b) const {
        while (a != b) {
            while (order_[a] < order_[b]) a = of_[a];
            while (order_[b] < order_[a]) b = of_[b];
        }
        return a;
    }

    const Graph& graph_;
    std::vector<std::vector<u32>> predecessors_;
    std::vector<u32> order_, finished_;  // in the order in which the search from the exit leaves blocks
    std::vector<u32> of_;
};

}  // namespace

void set_reconvergence(std::vector<Instruction>& instructions, Handler end) {
    const Graph graph(instructions, end);
    const PostDominators dominators(graph);
    for (u32 block = 0; block < graph.exit(); ++block) {
        Instruction& in = instructions[graph.last(block)];
        const u32 meeting = dominators.of(block);
        if (in.is_branch) in.reconvergence = meeting < graph.exit() ? graph.start(meeting) : kNowhere;
    }
}

}  // namespace kvjit::ptx
