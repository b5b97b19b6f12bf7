#include "inspect/sass/tile_loop.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "inspect/sass/turns.h"
#include "inspect/sass/ways.h"

namespace kvjit::tool::sass {
namespace {

/// A loop inside the loop over tiles with as many of float32's products is one of products; a few stand elsewhere.
constexpr int kProductsOfLoop = 16;
/// What a product counts as against an instruction that moves data, so that a way with more products does more work.
constexpr std::int64_t kProductWork = 100000;

/// More turns of a loop inside the loop over tiles are a misunderstanding.
constexpr std::int64_t kMostTurns = 65536;

using Instructions = std::vector<const Instruction*>;

template <class Asked>
std::int64_t count_of(const Instructions& instructions, Asked&& asked) {
    return std::ranges::count_if(instructions, [&](const Instruction* each) { return asked(*each); });
}

bool is_float_product(const Instruction& instruction) {
    return is_product(Product::kFloat, instruction);
}

/// Instructions in the order in which they were first added.
class Tally {
public:
    void add(const Instruction* instruction, std::int64_t times) {
        const auto [place, is_new] = places_.emplace(instruction, counted_.size());
        if (is_new) counted_.push_back({instruction, 0});
        counted_[place->second].times += times;
    }
    std::vector<Counted> take() { return std::move(counted_); }

private:
    std::vector<Counted> counted_;
    std::map<const Instruction*, std::size_t> places_;
};

/// A loop inside the loop over tiles: the instructions of one turn, and its turns.
class InnerLoop {
public:
    static Result<InnerLoop> of(const Code& code, const Loop& loop, Product product, const Tile& tile) {
        InnerLoop inner(code, loop, product, tile);
        if (auto way = inner.find_way(); !way) return fail(way.error());
        if (auto turns = inner.find_turns(); !turns) return fail(turns.error());
        return inner;
    }

    const Loop& loop() const { return *loop_; }
    const Instructions& turn() const { return turn_; }
    std::int64_t turns() const { return turns_; }

private:
    InnerLoop(const Code& code, const Loop& loop, Product product, const Tile& tile)
        : code_(&code), loop_(&loop), product_(product), tile_(&tile) {
        multiplies_ = count(code, loop, is_float_product) >= kProductsOfLoop;
    }

    const std::vector<Instruction>& instructions(int block) const {
        return (*code_)[static_cast<std::size_t>(block)].instructions;
    }
    bool does_work(const Instruction& each) const {
        return multiplies_ ? is_product(product_, each) : moves_data(each);
    }

    /// Of a loop of products the way that serves the call's rows; of others the one that moves most data.
    Result<void> find_way() {
        const auto ways = cheapest_ways(
            {loop_->head, [this](int block) { return followers(block); }, [this](int block) { return weight(block); }});
        if (ways.empty()) return unclear("no way leads through");
        const auto products =
            count(*code_, *loop_, [&](const Instruction& each) { return is_product(product_, each); });
        const std::int64_t all = multiplies_ ? std::int64_t{products} * tile_->computed_rows : ways.rbegin()->first;
        const std::int64_t needed = multiplies_ ? (all + tile_->room - 1) / tile_->room : all;
        const auto way = ways.lower_bound(needed);
        if (way == ways.end()) return unclear("no way does the products of the call's rows in");
        for (const int block : way->second.nodes) {
            for (const Instruction& each : instructions(block)) turn_.push_back(&each);
        }
        return {};
    }

    std::vector<int> followers(int block) const {
        std::vector<int> inside;
        std::ranges::copy_if((*code_)[static_cast<std::size_t>(block)].followers, std::back_inserter(inside),
                             [&](int each) { return loop_->blocks.contains(each); });
        return inside;
    }

    LoopGraph::Weight weight(int block) const {
        const auto work = std::ranges::count_if(instructions(block), [&](const auto& each) { return does_work(each); });
        return {work, std::ssize(instructions(block))};
    }

    Result<void> find_turns() {
        const auto copy = std::ranges::find(turn_, "LDGSTS", &Instruction::opcode);
        if (copy != turn_.end()) {
            const auto copies = std::ranges::count(turn_, "LDGSTS", &Instruction::opcode);
            turns_ = (tile_->copies_of_lane(bytes_of_lane(**copy)) + copies - 1) / copies;
        } else if (const std::optional<std::int64_t> constant = constant_turns(turn_)) {
            turns_ = *constant;
        }
        if (turns_ == 0) turns_ = turns_by_tile();
        const bool is_clear = turns_ > 0 && turns_ <= kMostTurns;
        return is_clear ? Result<void>() : unclear("nothing tells the turns of");
    }

    std::int64_t turns_by_tile() const {
        const auto products = count_of(turn_, [&](const Instruction& each) { return is_product(product_, each); });
        if (multiplies_) return products == 0 ? 0 : tile_->value_products / products;
        const bool takes_powers = std::ranges::find(turn_, "MUFU", &Instruction::opcode) != turn_.end();
        return takes_powers ? tile_->rows : 0;
    }

    std::unexpected<std::string> unclear(const std::string& what) const {
        return fail(what + " the loop at " + address_text(instructions(loop_->head).front().address));
    }

    const Code* code_;
    const Loop* loop_;
    Product product_;
    const Tile* tile_;
    bool multiplies_;
    Instructions turn_;
    std::int64_t turns_ = 0;
};

/// The loop over tiles as a graph: a node is a block, or a loop inside, which its head stands for.
class TileLoop {
public:
    TileLoop(const Code& code, const Loop& loop, Product product) : code_(code), loop_(loop), product_(product) {
        nodes_ = loop.blocks;
    }

    void add(InnerLoop inner) {
        const int head = inner.loop().head;
        for (const int block : inner.loop().blocks) {
            node_of_[block] = head;
            if (block != head) nodes_.erase(block);
        }
        inner_.emplace(head, std::move(inner));
    }

    Result<std::vector<Counted>> count() const {
        std::set<int> left;
        std::ranges::copy_if(nodes_, std::inserter(left, left.end()), [&](int node) { return products(node) != 0; });
        if (left.empty()) return fail("the loop over tiles has no loop of products inside");
        Tally tally;
        while (!left.empty()) {
            const std::vector<int> way = best_way(left);
            const std::size_t before = left.size();
            for (const int node : way) left.erase(node);
            if (left.size() == before) return fail("no way through the loop over tiles does the rest of its products");
            for (const int node : way) add_to(tally, node);
        }
        return tally.take();
    }

private:
    int node_of(int block) const {
        const auto found = node_of_.find(block);
        return found != node_of_.end() ? found->second : block;
    }
    const Block& block(int number) const { return code_[static_cast<std::size_t>(number)]; }

    /// The node's instructions, and how often each runs in a turn of the loop over tiles.
    std::pair<Instructions, std::int64_t> content(int node) const {
        if (const auto inner = inner_.find(node); inner != inner_.end()) {
            return {inner->second.turn(), inner->second.turns()};
        }
        Instructions instructions;
        for (const Instruction& each : block(node).instructions) instructions.push_back(&each);
        return {instructions, 1};
    }

    void add_to(Tally& tally, int node) const {
        const auto [instructions, times] = content(node);
        for (const Instruction* each : instructions) tally.add(each, times);
    }

    /// float32's count in loops only: a few stand elsewhere.
    std::int64_t products(int node) const {
        if (product_ == Product::kFloat && !inner_.contains(node)) return 0;
        const auto [instructions, times] = content(node);
        return times * count_of(instructions, [&](const Instruction& each) { return is_product(product_, each); });
    }

    /// The way that does most of the products of the nodes that are left.
    std::vector<int> best_way(const std::set<int>& left) const {
        const auto weigh = [&](int node) -> LoopGraph::Weight {
            const auto [instructions, times] = content(node);
            const std::int64_t moved = times * count_of(instructions, moves_data);
            const std::int64_t multiplied = left.contains(node) ? products(node) : 0;
            return {kProductWork * multiplied + moved, times * std::ssize(instructions)};
        };
        const auto ways = cheapest_ways({loop_.head, [this](int node) { return followers(node); }, weigh});
        return ways.empty() ? std::vector<int>() : ways.rbegin()->second.nodes;
    }

    std::vector<int> followers(int node) const {
        std::set<int> found;
        const auto add_followers = [&](int number) {
            for (const int each : block(number).followers) {
                if (loop_.blocks.contains(each)) found.insert(node_of(each));
            }
        };
        const auto inner = inner_.find(node);
        if (inner == inner_.end()) {
            add_followers(node);
        } else {
            std::ranges::for_each(inner->second.loop().blocks, add_followers);
            found.erase(node);
        }
        return {found.begin(), found.end()};
    }

    const Code& code_;
    const Loop& loop_;
    Product product_;
    std::set<int> nodes_;
    std::map<int, int> node_of_;      // of blocks in loops inside
    std::map<int, InnerLoop> inner_;  // by head
};

}  // namespace

Result<std::size_t> find_tile_loop(const Code& code, const std::vector<Loop>& loops, Product product) {
    std::optional<std::size_t> found;
    std::pair best = {0, 0};
    for (std::size_t place = 0; place < loops.size(); ++place) {
        const Loop& loop = loops[place];
        const int products = count(code, loop, [&](const Instruction& each) { return is_product(product, each); });
        const bool copies = count(code, loop, [](const Instruction& each) { return each.opcode == "LDGSTS"; }) != 0;
        const std::pair rank = {products, -static_cast<int>(loop.blocks.size())};
        if (!copies || products == 0 || (found && rank <= best)) continue;
        found = place;
        best = rank;
    }
    return found ? Result<std::size_t>(*found) : fail("no loop copies rows and multiplies");
}

Result<std::vector<Counted>> count_tile(const Code& code, const std::vector<Loop>& loops, std::size_t place,
                                        Product product, const Tile& tile) {
    TileLoop graph(code, loops[place], product);
    for (std::size_t number = 0; number < loops.size(); ++number) {
        const Loop& loop = loops[number];
        if (loop.around != static_cast<int>(place)) continue;
        if (std::ranges::find(loops, static_cast<int>(number), &Loop::around) != loops.end()) {
            return fail("the loop over tiles has loops of three levels");
        }
        Result<InnerLoop> inner = InnerLoop::of(code, loop, product, tile);
        if (!inner) return fail(inner.error());
        graph.add(*std::move(inner));
    }
    return graph.count();
}

}  // namespace kvjit::tool::sass
