#include "blocks/gpu.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "check/fault.h"

namespace kvjit::rt {
namespace {

using cuda::Code;

/// The largest distance between rows that one 2D copy of the driver takes.
constexpr std::int64_t kMaxPitch = 0x7fffffff;

void* pointer(std::int64_t address) {
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(address));
}

/// Scratch memory allocated in the order of the stream, for one block's share at a time.
class StreamScratch {
public:
    StreamScratch(const cuda::DriverApi& api, cuda::Stream stream) : api_(api), stream_(stream) {}
    StreamScratch(const StreamScratch&) = delete;
    StreamScratch& operator=(const StreamScratch&) = delete;
    ~StreamScratch() {
        if (address_ != 0) api_.memory_free_async(address_, stream_);
    }

    Code take(std::int64_t bytes) {
        return bytes == 0 ? cuda::kSuccess
                          : api_.memory_alloc_async(&address_, static_cast<std::size_t>(bytes), stream_);
    }
    std::int64_t address() const { return static_cast<std::int64_t>(address_); }

private:
    const cuda::DriverApi& api_;
    cuda::Stream stream_;
    cuda::Address address_ = 0;
};

std::int64_t scratch_bytes(std::span<const BlockWork> works) {
    std::int64_t bytes = 0;
    for (const BlockWork& work : works) {
        if (work.order != nullptr && work.order->has_scratch()) bytes = std::max(bytes, work.share.nest.bytes());
    }
    return bytes;
}

/// Offsets from the begin of a block, at each seat.
using Offsets = std::array<std::int64_t, kSeats>;

/// One end of a copy.
struct End {
    std::int64_t address;
    Seat seat;
    kvjit_memory memory;
};

/// Enqueues the copies of one share's blocks.
class Enqueuer {
public:
    Enqueuer(const cuda::DriverApi& api, const Nest& nest, cuda::Stream stream)
        : api_(api), nest_(nest), stream_(stream) {}

    Code copy(const End& from, const End& to) const {
        const std::int64_t pitch = pitch_of(from.seat), to_pitch = pitch_of(to.seat);
        const bool rows = is_pitch(pitch) && is_pitch(to_pitch);
        return each(rows, [&](const Offsets& at) {
            const std::int64_t source = from.address + at[index_of(from.seat)],
                               target = to.address + at[index_of(to.seat)];
            return rows ? copy_rows({source, from.seat, from.memory}, pitch, {target, to.seat, to.memory}, to_pitch)
                        : copy_run({source, from.seat, from.memory}, {target, to.seat, to.memory});
        });
    }

    /// Zeroes a block of the second cache.
    Code zero(std::int64_t address) const {
        const std::int64_t pitch = pitch_of(Seat::kSecond);
        const bool rows = is_pitch(pitch);
        const auto width = static_cast<std::size_t>(nest_.run());
        return each(rows, [&](const Offsets& at) {
            const std::int64_t first = address + at[index_of(Seat::kSecond)];
            const auto begin = static_cast<cuda::Address>(first);
            return rows ? api_.set_rows(begin, static_cast<std::size_t>(pitch), 0, width, height(), stream_)
                        : api_.set_bytes(begin, 0, width, stream_);
        });
    }

private:
    std::int64_t pitch_of(Seat seat) const {
        return nest_.dims().empty() ? 0 : nest_.dims().back().strides[index_of(seat)];
    }
    bool is_pitch(std::int64_t pitch) const { return pitch >= nest_.run() && pitch <= kMaxPitch; }
    std::size_t height() const { return static_cast<std::size_t>(nest_.dims().back().extent); }

    /// Calls `enqueue(offsets)` for each run; or, with `rows`, for all runs of the innermost dimension at once.
    template <class Enqueue>
    Code each(bool rows, const Enqueue& enqueue) const {
        return walk(0, nest_.dims().size() - (rows ? 1 : 0), {}, enqueue);
    }
    template <class Enqueue>
    Code walk(std::size_t depth, std::size_t depths, Offsets at, const Enqueue& enqueue) const {
        if (depth == depths) return enqueue(at);
        const Nest::Dim& dim = nest_.dims()[depth];
        for (std::int64_t i = 0; i < dim.extent; ++i) {
            if (const Code code = walk(depth + 1, depths, at, enqueue); code != cuda::kSuccess) return code;
            for (std::size_t seat = 0; seat < kSeats; ++seat) at[seat] += dim.strides[seat];
        }
        return cuda::kSuccess;
    }

    Code copy_run(const End& from, const End& to) const {
        const auto bytes = static_cast<std::size_t>(nest_.run());
        const auto source = static_cast<cuda::Address>(from.address), target = static_cast<cuda::Address>(to.address);
        if (from.memory == KVJIT_MEMORY_HOST) return api_.copy_to_device(target, pointer(from.address), bytes, stream_);
        if (to.memory == KVJIT_MEMORY_HOST) return api_.copy_to_host(pointer(to.address), source, bytes, stream_);
        return api_.copy_on_device(target, source, bytes, stream_);
    }

    static cuda::Copy2d::Side side(const End& end, std::int64_t pitch) {
        const bool host = end.memory == KVJIT_MEMORY_HOST;
        return {.x = 0,
                .y = 0,
                .type = host ? cuda::kHostMemory : cuda::kDeviceMemory,
                .host = host ? pointer(end.address) : nullptr,
                .device = host ? 0 : static_cast<cuda::Address>(end.address),
                .array = nullptr,
                .pitch = static_cast<std::size_t>(pitch)};
    }

    Code copy_rows(const End& from, std::int64_t pitch, const End& to, std::int64_t to_pitch) const {
        const cuda::Copy2d copy{side(from, pitch), side(to, to_pitch), static_cast<std::size_t>(nest_.run()), height()};
        return api_.copy_rows(&copy, stream_);
    }

    const cuda::DriverApi& api_;
    const Nest& nest_;
    cuda::Stream stream_;
};

/// Enqueues all blocks of one share.
Code enqueue(const cuda::DriverApi& api, const BlockWork& work, kvjit_memory first, kvjit_memory second,
             std::int64_t scratch, cuda::Stream stream) {
    const Enqueuer calls(api, work.share.nest, stream);
    const auto end = [&](Place place) {
        if (place.seat == Seat::kScratch) return End{scratch, place.seat, KVJIT_MEMORY_CUDA};
        return End{work.address(place), place.seat, place.seat == Seat::kFirst ? first : second};
    };
    Code code = cuda::kSuccess;
    for (std::size_t group = 0; group < work.groups() && code == cuda::kSuccess; ++group) {
        if (work.order == nullptr) {
            code = calls.zero(work.share.second.address(work.second[group]));
            continue;
        }
        for (const Step& step : work.order->group(group)) {
            code = calls.copy(end(step.from), end(step.to));
            if (code != cuda::kSuccess) break;
        }
    }
    return code;
}

}  // namespace

gen::Result<void> GpuBlocks::move(std::span<const BlockWork> works, kvjit_memory first, kvjit_memory second,
                                  void* stream) {
    const gen::Result<ContextScope> scope = context_.enter();
    if (!scope) return std::unexpected(scope.error());
    const cuda::DriverApi& api = driver_.api();
    const RelaxedCapture relaxed(api);  // another thread's capture must not affect this stream
    auto* queue = static_cast<cuda::Stream>(stream);
    StreamScratch scratch(api, queue);
    const std::int64_t bytes = scratch_bytes(works);
    if (const Code code = scratch.take(bytes); code != cuda::kSuccess) {
        return std::unexpected(driver_.error(code, text("allocating ", bytes, " bytes for a block")));
    }
    for (const BlockWork& work : works) {
        const Code code = enqueue(api, work, first, second, scratch.address(), queue);
        if (auto done = driver_.check(code, "moving blocks"); !done) return done;
    }
    return {};
}

gen::Result<GpuBlocks*> gpu_blocks(std::int64_t ordinal) {
    // Never destroyed, as the driver isn't.
    static auto& mutex = *new std::mutex;
    static auto& all = *new std::map<std::int64_t, std::unique_ptr<GpuBlocks>>;
    if (ordinal < 0 || ordinal > std::numeric_limits<int>::max()) {
        return refuse(KVJIT_BAD_ARGUMENT, "device", ordinal, 0, "it takes at least 0, and the GPUs that there are");
    }
    const std::lock_guard lock(mutex);
    if (const auto found = all.find(ordinal); found != all.end()) return found->second.get();
    const gen::Result<Driver>& driver = shared_driver();
    if (!driver) return std::unexpected(driver.error());
    gen::Result<GpuInfo> gpu = find_gpu(*driver, static_cast<int>(ordinal));
    if (!gpu) {
        gpu.error().argument = "device";  // there is no target here
        return std::unexpected(gpu.error());
    }
    return (all[ordinal] = std::make_unique<GpuBlocks>(*driver, gpu->device)).get();
}

}  // namespace kvjit::rt
