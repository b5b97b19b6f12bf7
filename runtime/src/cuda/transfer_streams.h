// Streams for copies alone: on the default stream each copy would wait for all work of the GPU. A plan's own stream
// would, too, where the driver waits for it before it stages pageable memory; and a graph captured there and replayed
// elsewhere would find the plan's memory as it was before the copies.
#pragma once

#include <mutex>

#include "cuda/gpu_context.h"

namespace kvjit::rt {

/// One stream for transfers in the primary context, and one for each transfer in another context, whose end is not
/// known. Thread-safe.
class TransferStreams {
public:
    TransferStreams(const Driver& driver, GpuContext& context) : driver_(driver), context_(context) {}
    TransferStreams(const TransferStreams&) = delete;
    TransferStreams& operator=(const TransferStreams&) = delete;
    ~TransferStreams();

    /// Calls `enqueue(stream)`, which returns a cuda::Code, and waits for the stream. `what`: see Driver::check.
    template <class Enqueue>
    gen::Result<void> run(const ContextScope& scope, std::string_view what, const Enqueue& enqueue) {
        const gen::Result<Lease> lease = take(scope);
        if (!lease) return std::unexpected(lease.error());
        const cuda::Code queued = enqueue(lease->stream);
        const cuda::Code done = driver_.api().stream_synchronize(lease->stream);
        give_back(*lease);
        return driver_.check(queued != cuda::kSuccess ? queued : done, what);
    }

private:
    struct Lease {
        cuda::Stream stream;
        bool kept;
    };

    gen::Result<Lease> take(const ContextScope& scope);
    void give_back(const Lease& lease);
    gen::Result<cuda::Stream> make();
    gen::Result<cuda::Stream> primary_stream();

    const Driver& driver_;
    GpuContext& context_;
    std::mutex mutex_;
    cuda::Stream primary_stream_ = nullptr;
};

}  // namespace kvjit::rt
