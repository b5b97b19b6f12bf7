#include "blocks/host.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "check/arithmetic.h"
#ifdef KVJIT_CPU_JIT
#include "cpu/executor.h"
#endif

namespace kvjit::rt {
namespace {

/// Bytes of a block that a thread moves at a time; also the scratch memory on its stack.
constexpr std::int64_t kSlice = std::int64_t{256} << 10;
constexpr std::int64_t kScratchSlice = std::int64_t{16} << 10;
/// The calling thread moves less than this alone: waking others would take longer.
constexpr std::int64_t kSerialBytes = std::int64_t{256} << 10;
/// Tasks for each thread, so that one delayed thread doesn't delay all.
constexpr std::int64_t kTasksPerThread = 4;

char* pointer(std::int64_t address) {
    return reinterpret_cast<char*>(static_cast<std::intptr_t>(address));
}

/// The slices of the groups of one share, in order.
class Slices {
public:
    explicit Slices(const BlockWork& work)
        : work_(work),
          slice_(work.order != nullptr && work.order->has_scratch() ? kScratchSlice : kSlice),
          per_group_(ceil_div(work.share.nest.bytes(), slice_)) {}

    std::int64_t count() const { return per_group_ * static_cast<std::int64_t>(work_.groups()); }

    void run(std::int64_t i) const {
        const auto group = static_cast<std::size_t>(i / per_group_);
        const std::int64_t begin = i % per_group_ * slice_, end = std::min(begin + slice_, work_.share.nest.bytes());
        if (work_.order == nullptr) return zero(work_.share.second.address(work_.second[group]), begin, end);
        alignas(64) std::array<char, kScratchSlice> scratch;
        // The scratch memory holds this slice alone.
        const std::int64_t block = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(scratch.data())) - begin;
        const auto address = [&](Place place) { return place.seat == Seat::kScratch ? block : work_.address(place); };
        for (const Step& step : work_.order->group(group)) {
            copy(address(step.from), step.from.seat, address(step.to), step.to.seat, begin, end);
        }
    }

private:
    void zero(std::int64_t block, std::int64_t begin, std::int64_t end) const {
        work_.share.nest.for_each_run(begin, end, Seat::kSecond, Seat::kSecond,
                                      [block](std::int64_t at, std::int64_t, std::int64_t bytes) {
                                          std::memset(pointer(block + at), 0, static_cast<std::size_t>(bytes));
                                      });
    }

    void copy(std::int64_t from, Seat from_seat, std::int64_t to, Seat to_seat, std::int64_t begin,
              std::int64_t end) const {
        const auto copy_run = [from, to](std::int64_t from_at, std::int64_t to_at, std::int64_t bytes) {
            std::memcpy(pointer(to + to_at), pointer(from + from_at), static_cast<std::size_t>(bytes));
        };
        work_.share.nest.for_each_run(begin, end, from_seat, to_seat, copy_run);
    }

    const BlockWork& work_;
    std::int64_t slice_, per_group_;
};

/// All slices of a call, divided into tasks of equally many.
class Tasks {
public:
    explicit Tasks(std::span<const BlockWork> works) {
        for (const BlockWork& work : works) {
            slices_.emplace_back(work);
            count_ += slices_.back().count();
            bytes_ = saturating_sum(bytes_, work.bytes());
        }
    }

    std::int64_t bytes() const { return bytes_; }

    void run(const kvjit_executor& executor) {
        tasks_ = std::min(count_, saturating_product(std::int64_t{executor.concurrency}, kTasksPerThread));
        executor.run(executor.context, run_task, this, tasks_);
    }
    void run_serially() const { run(0, count_); }

private:
    static void run_task(void* tasks, std::int64_t i) {
        const Tasks& self = *static_cast<const Tasks*>(tasks);
        const std::int64_t size = self.count_ / self.tasks_, larger = self.count_ % self.tasks_;
        const std::int64_t begin = i * size + std::min(i, larger);
        self.run(begin, begin + size + (i < larger ? 1 : 0));
    }

    void run(std::int64_t begin, std::int64_t end) const {
        for (const Slices& slices : slices_) {
            const std::int64_t last = std::min(end, slices.count());
            for (std::int64_t i = begin; i < last; ++i) slices.run(i);
            begin = std::max<std::int64_t>(0, begin - slices.count());
            end -= slices.count();
            if (end <= 0) return;
        }
    }

    std::vector<Slices> slices_;
    std::int64_t count_ = 0, tasks_ = 0, bytes_ = 0;
};

}  // namespace

gen::Result<void> move_on_host(std::span<const BlockWork> works, const kvjit_blocks_options& options) {
    Tasks tasks(works);
    if (tasks.bytes() == 0) return {};
    if (tasks.bytes() <= kSerialBytes) return tasks.run_serially(), gen::Result<void>();
#ifdef KVJIT_CPU_JIT
    const gen::Result<kvjit_executor> executor = executor_of(options);
    if (!executor) return std::unexpected(executor.error());
    tasks.run(*executor);
#else  // there is no default executor
    if (options.executor == nullptr) return tasks.run_serially(), gen::Result<void>();
    tasks.run(*options.executor);
#endif
    return {};
}

}  // namespace kvjit::rt
