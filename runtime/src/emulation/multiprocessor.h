// Runs one launch at a time: its blocks one after the other, a block's threads as fibers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulation/checks.h"
#include "emulation/copies.h"
#include "emulation/fiber.h"
#include "emulation/meetings.h"
#include "emulation/random.h"
#include "emulation/schedule.h"
#include "emulation/shared_memory.h"

namespace kvjit::emulation {

using Launch = kvjit_emulation_launch;

inline constexpr unsigned kMaxThreads = 1024;
inline constexpr std::size_t kMaxArgumentBytes = 4096;

class Multiprocessor {
public:
    Multiprocessor(std::uint64_t seed, const Lines& lines)
        : seed_(seed), random_(seed), checks_(stacks_, shared_, meetings_, lines) {}
    Multiprocessor(const Multiprocessor&) = delete;
    Multiprocessor& operator=(const Multiprocessor&) = delete;

    /// Not thread-safe. Errors: KVJIT_CUDA_ERROR, KVJIT_OUT_OF_MEMORY.
    gen::Result<void> launch(const Launch& launch);

private:
    struct Calls;  // Services, for a thread of this
    static const Services kServices;

    gen::Result<void> prepare(int threads);
    void run_block(const Launch& launch, i64 x, i64 y);
    static void run_thread();
    gen::Error failure(const Launch& launch) const;

    // On a thread's stack, where none of these returns after an error:
    enum class Outcome { kFine, kWrong, kWrongAccess, kOutOfMemory };
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
    Checks checks_;
    std::vector<Copies> copies_;
    void (*kernel_)(const void*) = nullptr;
    alignas(64) char arguments_[kMaxArgumentBytes];

    Outcome outcome_ = Outcome::kFine;
    std::string wrong_;
    i64 wrong_x_ = 0, wrong_y_ = 0;
};

}  // namespace kvjit::emulation
