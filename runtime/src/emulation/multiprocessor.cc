#include "emulation/multiprocessor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

namespace kvjit::emulation {
namespace {

/// Blocks and barriers that a launch may have before their numbers would run out.
constexpr Epoch kMostEpochs = 1U << 31;

Fiber& this_fiber() {
    char* frame = static_cast<char*>(__builtin_frame_address(0));
    char* stack = frame - (reinterpret_cast<std::uintptr_t>(frame) & (kStackBytes - 1));
    return *reinterpret_cast<Fiber*>(stack + kStackBytes - kThreadBytes);
}

std::string at(Site site) {
    return std::string(" at ") + site.file + ":" + std::to_string(site.line);
}

/// One lane's ldmatrix.x4: registers and the address of one row of 16 bytes.
struct MatrixLane {
    unsigned* registers;
    const unsigned short* row;
};

/// Lane l gets elements 2 * (l % 4) and the next of row l / 4, of each matrix; transposed, of column l / 4.
template <bool kTransposed>
void distribute(void* const* arguments) {
    const auto lane = [&](int l) -> const MatrixLane& { return *static_cast<const MatrixLane*>(arguments[l]); };
    for (int l = 0; l < kWarpLanes; ++l) {
        const int major = l / 4, minor = 2 * (l % 4);
        for (int matrix = 0; matrix < 4; ++matrix) {
            const auto element = [&](int i) -> unsigned {
                return kTransposed ? lane(8 * matrix + minor + i).row[major] : lane(8 * matrix + major).row[minor + i];
            };
            lane(l).registers[matrix] = element(0) | element(1) << 16;
        }
    }
}

}  // namespace

struct Multiprocessor::Calls {
    static Fiber& fiber(Thread& self) { return static_cast<Fiber&>(self); }
    static Multiprocessor& owner(Thread& self) { return *fiber(self).owner; }

    static void barrier(Thread& self, Site site) {
        fiber(self).steps = 0;
        owner(self).check(fiber(self), [&] { return owner(self).meetings_.meet_block(fiber(self), site); });
    }

    static void collective(Thread& self, Collective kind, Site site, void* argument, void (*work)(void* const*)) {
        fiber(self).steps = 0;
        owner(self).check(fiber(self),
                          [&] { return owner(self).meetings_.meet_warp(fiber(self), kind, site, argument, work); });
    }

    static void load_matrices(Thread& self, unsigned* registers, const void* row, bool transposed, Site site,
                              const void* where) {
        owner(self).check_access(fiber(self), {row, 16, Touch::kRead, where, 16, Space::kShared, true});
        MatrixLane lane{registers, static_cast<const unsigned short*>(row)};
        collective(self, Collective::kLoadMatrices, site, &lane, transposed ? distribute<true> : distribute<false>);
    }

    static void* shared_memory(Thread& self, i64 bytes, Site site) {
        SharedMemory& shared = owner(self).shared_;
        owner(self).check(fiber(self), [&] {
            if (bytes <= shared.bytes()) return std::string();
            return "shared_memory" + at(site) + " is of a type of " + std::to_string(bytes) +
                   " bytes, the launch gave " + std::to_string(shared.bytes());
        });
        return shared.use();
    }

    static void copy_async(Thread& self, void* shared, const void* global, i64 bytes, bool valid, const void* where) {
        owner(self).check_access(fiber(self), {shared, bytes, Touch::kIssue, where, bytes, Space::kShared});
        if (valid) owner(self).check_access(fiber(self), {global, bytes, Touch::kRead, where, bytes});
        owner(self).guard(fiber(self), [&] {
            owner(self).copies_[self.index].issue(static_cast<char*>(shared),
                                                  valid ? static_cast<const char*>(global) : nullptr, bytes, where);
        });
    }

    static void commit_copies(Thread& self) { owner(self).copies_[self.index].commit(); }

    static void wait_copies(Thread& self, int pending) {
        owner(self).copies_[self.index].wait(pending, [&](const Copy& copy) {
            owner(self).check_access(fiber(self), {copy.to, copy.bytes, Touch::kArrive, copy.where, 1});
        });
    }

    static unsigned atomic_add(Thread& self, unsigned* address, unsigned value, const void* where) {
        owner(self).check_access(fiber(self), {address, sizeof(*address), Touch::kAtomic, where, alignof(unsigned)});
        owner(self).guard(fiber(self), [&] { owner(self).checks_.atomic(fiber(self), address); });
        return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
    }

    static void thread_fence(Thread& self) { owner(self).checks_.fence(fiber(self)); }

    static void access(Thread& self, const void* address, i64 bytes, AccessKind kind, const void* where) {
        const Touch touch = kind.write ? Touch::kWrite : Touch::kRead;
        owner(self).check_access(fiber(self), {address, bytes, touch, where, kind.alignment});
    }
};

const Services Multiprocessor::kServices = {
    Calls::barrier,       Calls::collective,  Calls::load_matrices, Calls::shared_memory, Calls::copy_async,
    Calls::commit_copies, Calls::wait_copies, Calls::atomic_add,    Calls::thread_fence,  Calls::access,
};

// Nothing may unwind through the kernel, and a handler may not be left for another stack.
template <class Work>
void Multiprocessor::guard(Fiber& self, Work&& work) {
    bool no_memory = false;
    try {
        work();
    } catch (const std::bad_alloc&) {
        no_memory = true;
    }
    if (no_memory) stop(self, Outcome::kOutOfMemory);
}

template <class Work>
void Multiprocessor::check(Fiber& self, Work&& work) {
    guard(self, [&] { wrong_ = work(); });
    if (!wrong_.empty()) stop(self, Outcome::kWrong);
}

void Multiprocessor::check_access(Fiber& self, const Access& access) {
    bool fine = true;
    guard(self, [&] { fine = checks_.access(self, access); });
    if (!fine) stop(self, Outcome::kWrongAccess);
}

void Multiprocessor::stop(const Fiber& self, Outcome outcome) {
    outcome_ = outcome;
    wrong_x_ = self.block_x;
    wrong_y_ = self.block_y;
    schedule_.abort();
}

void Multiprocessor::run_thread() {
    Fiber& self = this_fiber();
    Multiprocessor& owner = *self.owner;
    owner.kernel_(owner.arguments_);
    owner.check(self, [&] { return owner.meetings_.leave(self); });
    owner.schedule_.leave();
}

gen::Result<void> Multiprocessor::prepare(int threads) {
    if (auto reserved = stacks_.reserve(threads, *this); !reserved) return reserved;
    if (!shared_.reserve()) {
        return gen::fail(KVJIT_OUT_OF_MEMORY, "memory", "no memory for an emulated block's shared memory");
    }
    copies_.resize(std::max(copies_.size(), static_cast<std::size_t>(threads)));
    random_ = Random(seed_);
    wrong_.clear();
    outcome_ = Outcome::kFine;
    if (meetings_.block_epoch() > kMostEpochs) {
        meetings_.restart_epochs();
        checks_.forget();
    }
    return {};
}

void Multiprocessor::run_block(const Launch& launch, i64 x, i64 y) {
    const int threads = static_cast<int>(launch.threads);
    meetings_.start(threads);
    shared_.start(launch.shared_bytes);
    checks_.start_block(x, y, threads);
    for (int i = 0; i < threads; ++i) {
        static_cast<Thread&>(stacks_[i]) = {&kServices, x, y, i};
        stacks_[i].steps = 0;
        copies_[i].start();
    }
    schedule_.run(threads, run_thread);
}

gen::Error Multiprocessor::failure(const Launch& launch) const {
    if (outcome_ == Outcome::kOutOfMemory) {
        return {KVJIT_OUT_OF_MEMORY, "no memory for what the emulator notes of a kernel's accesses", "memory"};
    }
    const std::string wrong = outcome_ == Outcome::kWrongAccess ? checks_.wrong() : wrong_;
    std::string message = "an emulated kernel is wrong: " + wrong + " (block " + std::to_string(wrong_x_) + ", " +
                          std::to_string(wrong_y_) + " of " + std::to_string(launch.x) + " x " +
                          std::to_string(launch.y) + ", KVJIT_EMULATION_SEED=" + std::to_string(seed_) + ")";
    return {KVJIT_CUDA_ERROR, std::move(message), "kernel", wrong_x_, launch.x};
}

gen::Result<void> Multiprocessor::launch(const Launch& launch) {
    if (auto ready = prepare(static_cast<int>(launch.threads)); !ready) return ready;
    kernel_ = reinterpret_cast<void (*)(const void*)>(launch.kernel);
    std::memcpy(arguments_, launch.args, launch.args_bytes);
    checks_.start_launch(launch.kernel, arguments_, sizeof(arguments_));
    // All blocks in an order that depends on the seed: steps of a number that has no divisor in common with theirs.
    const std::uint64_t blocks = std::uint64_t{launch.x} * launch.y;
    std::uint64_t step = random_.next() % blocks;
    while (std::gcd(step, blocks) != 1) ++step;
    std::uint64_t block = random_.next() % blocks;
    for (std::uint64_t i = 0; i < blocks && outcome_ == Outcome::kFine; ++i) {
        run_block(launch, static_cast<i64>(block % launch.x), static_cast<i64>(block / launch.x));
        block = (block + step) % blocks;
    }
    if (outcome_ != Outcome::kFine) return std::unexpected(failure(launch));
    return {};
}

}  // namespace kvjit::emulation
