// Runs one launch at a time: its blocks one after the other, a block's threads as fibers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/emulation/checks.h"
#include "cuda/emulation/copies.h"
#include "cuda/emulation/fiber.h"
#include "cuda/emulation/meetings.h"
#include "cuda/emulation/random.h"
#include "cuda/emulation/schedule.h"
#include "cuda/emulation/shared_memory.h"

namespace kvjit::emulation {

using rt::Grid;

inline constexpr unsigned kMaxThreads = 1024;
inline constexpr std::size_t kMaxArgumentBytes = 4096;

class Multiprocessor {
public:
    explicit Multiprocessor(std::uint64_t seed) : seed_(seed), random_(seed) {}
    Multiprocessor(const Multiprocessor&) = delete;
    Multiprocessor& operator=(const Multiprocessor&) = delete;

    /// Not thread-safe. Errors: KVJIT_CUDA_ERROR, KVJIT_OUT_OF_MEMORY.
    gen::Result<void> launch(void* kernel, const Grid& grid, const void* args, std::size_t args_bytes);

private:
    struct Calls;  // Services, for a thread of this
    static const Services kServices;

    gen::Result<void> prepare(const Grid& grid);
    void run_block(const Grid& grid, i64 x, i64 y);
    static void run_thread();
    gen::Error failure(const Grid& grid) const;

    // On a thread's stack, where none of these returns after an error:
    enum class Outcome { kFine, kWrong, kOutOfMemory };
    /// Does what may throw.
    template <class Work>
    void guard(Fiber& self, Work&& work);
    /// work() says what is wrong, which ends the launch; an empty text changes nothing.
    template <class Work>
    void check(Fiber& self, Work&& work);
    void check_access(Fiber& self, const Access& access);
    void stop(const Fiber& self, Outcome outcome);

    const std::uint64_t seed_;
    Random random_;
    Stacks stacks_;
    Schedule schedule_{stacks_, random_};
    Meetings meetings_{schedule_};
    SharedMemory shared_;
    Checks checks_{stacks_, shared_, meetings_};
    std::vector<Copies> copies_;
    void (*kernel_)(const void*) = nullptr;
    alignas(64) char arguments_[kMaxArgumentBytes];

    Outcome outcome_ = Outcome::kFine;
    std::string wrong_;
    i64 wrong_x_ = 0, wrong_y_ = 0;
};

}  // namespace kvjit::emulation
