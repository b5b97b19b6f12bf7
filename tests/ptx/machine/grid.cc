#include "ptx/machine/grid.h"

#include <memory>
#include <numeric>
#include <utility>

#include "ptx/machine/block.h"

namespace kvjit::ptx {
namespace {

class Grid {
public:
    Grid(const Kernel& kernel, const Launch& launch, std::vector<Range> memory, const Options& options)
        : kernel_(kernel), launch_(launch), options_(options), global_(std::move(memory)), random_(options.seed) {
        waiting_.resize(std::size_t{launch.blocks_x} * launch.blocks_y);
        std::iota(waiting_.begin(), waiting_.end(), 0U);
        for (std::size_t i = waiting_.size(); i > 1; --i) {
            std::swap(waiting_[i - 1], waiting_[random_.below(static_cast<u32>(i))]);
        }
    }

    void run() {
        for (refill(); !resident_.empty(); refill()) {
            const u32 chosen = choose();
            Block& block = *resident_[chosen];
            block.take_turn(random_);
            // Others get to run before a fence behind the count publishes what one before it should have published.
            if (block.has_counted() && random_.below(2) == 0) held_ = &block;
            if (!block.is_done()) continue;
            block.stores().forget_writers();
            ended_.push_back(std::move(block.stores()));
            resident_.erase(resident_.begin() + chosen);
            held_ = nullptr;
        }
        for (LateStores& stores : ended_) stores.flush();
    }

private:
    /// One of the resident blocks, but not the one that is held.
    u32 choose() {
        for (;;) {
            const u32 chosen = random_.below(static_cast<u32>(resident_.size()));
            if (resident_[chosen].get() != held_ || resident_.size() == 1) return chosen;
        }
    }

    void refill() {
        while (resident_.size() < static_cast<std::size_t>(options_.resident_blocks) && !waiting_.empty()) {
            resident_.push_back(make_block(waiting_.back()));
            waiting_.pop_back();
        }
    }

    std::unique_ptr<Block> make_block(u32 number) {
        BlockState state;
        state.x = number % launch_.blocks_x;
        state.y = number / launch_.blocks_x;
        state.blocks_x = launch_.blocks_x;
        state.blocks_y = launch_.blocks_y;
        state.threads = launch_.threads;
        state.parameters = launch_.parameters.data();
        state.parameter_bytes = kernel_.parameter_bytes;
        state.options = &options_;
        state.global = &global_;
        state.random = &random_;
        state.stores = LateStores(options_.has_late_stores);
        return std::make_unique<Block>(kernel_, std::move(state), launch_.shared_bytes);
    }

    const Kernel& kernel_;
    const Launch& launch_;
    const Options& options_;
    GlobalMemory global_;
    Random random_;
    std::vector<u32> waiting_;
    std::vector<std::unique_ptr<Block>> resident_;
    std::vector<LateStores> ended_;
    const Block* held_ = nullptr;  // since it counted, until another block ends or is held instead
};

}  // namespace

void run_grid(const Kernel& kernel, const Launch& launch, std::vector<Range> memory, const Options& options) {
    if (kernel.max_threads != 0 && launch.threads > kernel.max_threads) {
        throw Fault(FaultKind::kUndefined, "a block of " + std::to_string(launch.threads) + " threads; " + kernel.name +
                                               " takes up to " + std::to_string(kernel.max_threads));
    }
    Grid(kernel, launch, std::move(memory), options).run();
}

}  // namespace kvjit::ptx
