#include "cuda/emulation/emulator.h"

#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "cuda/emulation/multiprocessor.h"
#include "environment.h"

namespace kvjit::rt {
namespace {

using emulation::Multiprocessor;

constexpr std::size_t kAlignment = 256;
constexpr int kPoison = 0xff;  // NaN as float32 and as float16
/// Few, so that small batches already split their keys.
constexpr int kMultiprocessors = 8;
constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxGridY = 0xffff;

struct Limit {
    const char* name;
    std::size_t value, limit;
};

gen::Result<void> check_launch(const Grid& grid, std::size_t args_bytes) {
    const Limit limits[] = {
        {"grid.x", grid.x, kMaxGridX},
        {"grid.y", grid.y, kMaxGridY},
        {"grid.threads", grid.threads, emulation::kMaxThreads},
        {"grid.shared_bytes", grid.shared_bytes, emulation::SharedMemory::kMostBytes},
        {"args_bytes", args_bytes, emulation::kMaxArgumentBytes},
    };
    for (const Limit& l : limits) {
        if (l.value <= l.limit) continue;
        return gen::fail(
            KVJIT_CUDA_ERROR, l.name,
            std::string(l.name) + " is " + std::to_string(l.value) + "; it may be up to " + std::to_string(l.limit),
            static_cast<std::int64_t>(l.value), static_cast<std::int64_t>(l.limit));
    }
    if (grid.threads > 0 && grid.threads % emulation::kWarpLanes == 0) return {};
    return gen::fail(KVJIT_CUDA_ERROR, "grid.threads",
                     "grid.threads is " + std::to_string(grid.threads) + "; it is a multiple of 32", grid.threads, 32);
}

class Emulator final : public Device {
public:
    explicit Emulator(const EmulatorOptions& options) : options_(options) {}

    gen::Result<void> launch(void* kernel, const Grid& grid, const void* args, std::size_t args_bytes, void*) override {
        if (grid.x == 0 || grid.y == 0) return {};
        if (auto legal = check_launch(grid, args_bytes); !legal) return legal;
        try {
            std::unique_ptr<Multiprocessor> processor = take();
            auto result = processor->launch(kernel, grid, args, args_bytes);
            give_back(std::move(processor));
            return result;
        } catch (const std::bad_alloc&) {
            return out_of_memory();
        }
    }

    gen::Result<void*> allocate(std::size_t bytes) override {
        void* memory = ::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow);
        if (!memory) return out_of_memory();
        return std::memset(memory, kPoison, bytes);
    }

    void release(void* memory) noexcept override { ::operator delete(memory, std::align_val_t{kAlignment}); }

    gen::Result<void> upload(void* to, const void* from, std::size_t bytes, Behind) override {
        std::memcpy(to, from, bytes);
        return {};
    }

    gen::Result<void> zero(void* to, std::size_t bytes, Behind) override {
        std::memset(to, 0, bytes);
        return {};
    }

    gen::Result<void> synchronize(void*) override { return {}; }

    gen::Result<void> download(void* to, const void* from, std::size_t bytes, void*) override {
        std::memcpy(to, from, bytes);
        return {};
    }

    int multiprocessors() const override { return kMultiprocessors; }

private:
    static std::unexpected<gen::Error> out_of_memory() {
        return gen::fail(KVJIT_OUT_OF_MEMORY, "memory", "no memory for emulating CUDA");
    }

    // Stacks and shared memory stay mapped between launches.
    std::unique_ptr<Multiprocessor> take() {
        std::lock_guard lock(mutex_);
        if (idle_.empty()) return std::make_unique<Multiprocessor>(options_.seed);
        std::unique_ptr<Multiprocessor> last = std::move(idle_.back());
        idle_.pop_back();
        return last;
    }

    void give_back(std::unique_ptr<Multiprocessor> processor) {
        std::lock_guard lock(mutex_);
        idle_.push_back(std::move(processor));
    }

    const EmulatorOptions options_;
    std::mutex mutex_;  // guards what follows
    std::vector<std::unique_ptr<Multiprocessor>> idle_;
};

}  // namespace

gen::Result<EmulatorOptions> emulator_options() {
    const gen::Result<std::optional<std::uint64_t>> seed = seed_of_environment();
    if (!seed) return std::unexpected(seed.error());
    return EmulatorOptions{.seed = seed->value_or(EmulatorOptions().seed)};
}

std::unique_ptr<Device> make_emulator(const EmulatorOptions& options) {
    return std::make_unique<Emulator>(options);
}

}  // namespace kvjit::rt
