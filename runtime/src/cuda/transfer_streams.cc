#include "cuda/transfer_streams.h"

namespace kvjit::rt {

TransferStreams::~TransferStreams() {
    if (primary_stream_ == nullptr) return;
    const RelaxedCapture relaxed(driver_.api());
    // A stream belongs to its context, whether that is current or not.
    driver_.api().stream_destroy(primary_stream_);
}

gen::Result<TransferStreams::Lease> TransferStreams::take(const ContextScope& scope) {
    const gen::Result<bool> primary = context_.keep_if_primary(scope.context());
    if (!primary) return std::unexpected(primary.error());
    const gen::Result<cuda::Stream> stream = *primary ? primary_stream() : make();
    if (!stream) return std::unexpected(stream.error());
    return Lease{*stream, *primary};
}

void TransferStreams::give_back(const Lease& lease) {
    if (!lease.kept) driver_.api().stream_destroy(lease.stream);
}

gen::Result<cuda::Stream> TransferStreams::make() {
    cuda::Stream stream = nullptr;
    const cuda::Code code = driver_.api().stream_create(&stream, cuda::kStreamNonBlocking);
    if (auto made = driver_.check(code, "making a stream"); !made) return std::unexpected(made.error());
    return stream;
}

gen::Result<cuda::Stream> TransferStreams::primary_stream() {
    const std::lock_guard lock(mutex_);
    if (primary_stream_ != nullptr) return primary_stream_;
    gen::Result<cuda::Stream> made = make();
    if (made) primary_stream_ = *made;
    return made;
}

}  // namespace kvjit::rt
