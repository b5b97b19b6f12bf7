// The step of quickstart.cc on a GPU, as an engine does it that uses the CUDA runtime: memory and stream are the
// engine's, and kvjit enqueues its kernels there. Exit code 77: there is no GPU.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace {

constexpr int kHeads = 8, kKvHeads = 2, kDim = 128, kTokens = 512, kQuantGroup = 8;
constexpr int kSkipped = 77;

void must(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

void must(const kvjit::Result<void>& result) {
    if (!result) throw std::runtime_error(result.error().message());
}

template <class T>
T must(kvjit::Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    return *std::move(result);
}

struct StreamEnd {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using Stream = std::unique_ptr<CUstream_st, StreamEnd>;

Stream make_stream() {
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return Stream(stream);
}

struct DeviceFree {
    void operator()(void* memory) const { cudaFree(memory); }
};
template <class T>
using DeviceArray = std::unique_ptr<T[], DeviceFree>;

/// The elements of `host` on the GPU, once the stream has come so far.
template <class T>
DeviceArray<T> to_device(const std::vector<T>& host, cudaStream_t stream) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, host.size() * sizeof(T)));
    DeviceArray<T> array(static_cast<T*>(memory));
    must(cudaMemcpyAsync(memory, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice, stream));
    return array;
}

/// One sequence of 300 tokens, the last one new. The arrays lie on the GPU or here.
kvjit::Batch one_sequence(const std::int64_t* seqstarts, const std::int64_t* kvstarts, const std::int64_t* start_pos,
                          const std::int64_t* pages) {
    kvjit::Batch batch;
    batch.batch_size = 1;
    batch.num_heads = kHeads;
    batch.num_kv_heads = kKvHeads;
    batch.max_tokens = kTokens;
    batch.decoding_batches = 1;
    batch.seqstarts = seqstarts;
    batch.kvstarts = kvstarts;
    batch.start_pos = start_pos;
    batch.cachestarts = kvjit::Tensor(pages, KVJIT_I64, {1, 3});
    return batch;
}

/// Plans, runs and waits. Returns attn_output[0, 0, 0].
float run_step(const kvjit::Kernel& kernel, cudaStream_t stream) {
    const std::vector<std::int64_t> pages{384, 0, 128};  // a page is 128 tokens of the cache, wherever they lie
    const std::vector<std::int64_t> seqstarts{0, 1}, kvstarts{0, 300}, start_pos{299};
    const auto device_pages = to_device(pages, stream), device_seqstarts = to_device(seqstarts, stream);
    const auto device_kvstarts = to_device(kvstarts, stream), device_start_pos = to_device(start_pos, stream);
    const kvjit::Batch batch =
        one_sequence(device_seqstarts.get(), device_kvstarts.get(), device_start_pos.get(), device_pages.get());

    // A GPU's arrays can't be checked here, but what they were copied from can. Without host_batch a plan needs
    // max_seqlen and max_kvlen, and each run checks the arrays on the GPU.
    const kvjit::Batch here = one_sequence(seqstarts.data(), kvstarts.data(), start_pos.data(), pages.data());
    kvjit::PlanOptions options;
    options.stream = stream;
    options.host_batch = &here;
    kvjit::Plan plan = must(kernel.plan(batch, options));

    constexpr int kCacheElements = 2 * kKvHeads * kTokens * kDim;
    const auto query = to_device(std::vector<float>(kHeads * kDim, 0.1f), stream);
    const auto key = to_device(std::vector<float>(kKvHeads * kDim, 0.2f), stream);
    const auto value = to_device(std::vector<float>(kKvHeads * kDim, 0.3f), stream);
    const auto cache = to_device(std::vector<std::int8_t>(kCacheElements), stream);
    const auto scale = to_device(std::vector<float>(kCacheElements / kQuantGroup, 0.01f), stream);
    std::vector<float> output(kHeads * kDim);
    const auto device_output = to_device(output, stream);
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query.get(), KVJIT_F32, {1, kHeads, kDim});
    tensors.current_key = kvjit::Tensor(key.get(), KVJIT_F32, {1, kKvHeads, kDim});
    tensors.current_value = kvjit::Tensor(value.get(), KVJIT_F32, {1, kKvHeads, kDim});
    tensors.cache = kvjit::Tensor(cache.get(), KVJIT_I8, {1, 2, kKvHeads, kTokens, kDim});
    tensors.scale = kvjit::Tensor(scale.get(), KVJIT_F32, {1, 2, kKvHeads, kTokens, kDim / kQuantGroup});
    tensors.attn_output = kvjit::Tensor(device_output.get(), KVJIT_F32, {1, kHeads, kDim});

    must(plan.run(tensors));  // enqueues; an engine goes on with the layer's other kernels on the same stream
    must(cudaMemcpyAsync(output.data(), device_output.get(), output.size() * sizeof(float), cudaMemcpyDeviceToHost,
                         stream));
    must(plan.synchronize());
    return output[0];
}

/// Why there is no GPU; null: there is one.
const char* missing_gpu() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver) return cudaGetErrorString(status);
    must(status);
    return nullptr;
}

}  // namespace

int main() try {
    if (const char* reason = missing_gpu()) return std::printf("SKIP: %s\n", reason), kSkipped;
    must(cudaSetDevice(0));
    const kvjit::Engine engine = must(kvjit::Engine::create());
    const kvjit::KernelSpec spec = must(kvjit::KernelSpec::parse(
        "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,quant_bit=8,cache_mode=page_table,layout=L2HTD"));
    const kvjit::Kernel kernel = must(engine.kernel(spec, must(kvjit::Target::cuda_device(0))));
    const Stream stream = make_stream();
    std::printf("attn_output[0, 0, 0] = %.4g\n", static_cast<double>(run_step(kernel, stream.get())));
} catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}
