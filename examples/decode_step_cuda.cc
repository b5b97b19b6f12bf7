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

/// The elements of `host` on the GPU, once the stream has come so far: data() and size() are all that a view takes.
template <class T>
class DeviceArray {
public:
    DeviceArray(const std::vector<T>& host, cudaStream_t stream) : size_(host.size()) {
        void* memory = nullptr;
        must(cudaMalloc(&memory, size_ * sizeof(T)));
        memory_.reset(static_cast<T*>(memory));
        must(cudaMemcpyAsync(memory, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice, stream));
    }
    T* data() const { return memory_.get(); }
    std::size_t size() const { return size_; }

private:
    std::unique_ptr<T[], DeviceFree> memory_;
    std::size_t size_;
};

/// One sequence of 300 tokens, the last one new. The arrays lie on the GPU or here.
template <class Array>
kvjit::Batch one_sequence(const Array& seqstarts, const Array& kvlens, const Array& pages) {
    kvjit::Batch batch;
    batch.num_heads = kHeads;
    batch.max_tokens = kTokens;
    batch.set_seqstarts(seqstarts).set_kvlens(kvlens).set_cachestarts(pages, {1, 3});
    return batch;
}

/// Plans, runs and waits. Returns attn_output[0, 0, 0].
float run_step(const kvjit::Kernel& kernel, cudaStream_t stream) {
    const std::vector<std::int64_t> pages{384, 0, 128};  // a page is 128 tokens of the cache, wherever they lie
    const std::vector<std::int64_t> seqstarts{0, 1}, kvlens{300};
    const DeviceArray device_pages(pages, stream), device_seqstarts(seqstarts, stream), device_kvlens(kvlens, stream);
    const kvjit::Batch batch = one_sequence(device_seqstarts, device_kvlens, device_pages);

    // A GPU's arrays can't be checked here, but what they were copied from can. Without host_batch a plan needs
    // max_seqlen and max_kvlen, and each run checks the arrays on the GPU.
    const kvjit::Batch here = one_sequence(seqstarts, kvlens, pages);
    kvjit::PlanOptions options;
    options.stream = stream;
    options.set_host_batch(here);
    kvjit::Plan plan = kernel.plan(batch, options).value();

    constexpr int kCacheElements = 2 * kKvHeads * kTokens * kDim;
    const DeviceArray query(std::vector<float>(kHeads * kDim, 0.1f), stream);
    const DeviceArray key(std::vector<float>(kKvHeads * kDim, 0.2f), stream);
    const DeviceArray value(std::vector<float>(kKvHeads * kDim, 0.3f), stream);
    const DeviceArray cache(std::vector<std::int8_t>(kCacheElements), stream);
    const DeviceArray scale(std::vector<float>(kCacheElements / kQuantGroup, 0.01f), stream);
    std::vector<float> output(kHeads * kDim);
    const DeviceArray device_output(output, stream);
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {1, kHeads, kDim});
    tensors.current_key = kvjit::Tensor(key, {1, kKvHeads, kDim});
    tensors.current_value = kvjit::Tensor(value, {1, kKvHeads, kDim});
    tensors.cache = kvjit::Tensor(cache, {1, 2, kKvHeads, kTokens, kDim});
    tensors.scale = kvjit::Tensor(scale, {1, 2, kKvHeads, kTokens, kDim / kQuantGroup});
    tensors.attn_output = kvjit::Tensor(device_output, {1, kHeads, kDim});

    plan.run(tensors).value();  // enqueues; an engine goes on with the layer's other kernels on the same stream
    must(cudaMemcpyAsync(output.data(), device_output.data(), output.size() * sizeof(float), cudaMemcpyDeviceToHost,
                         stream));
    plan.synchronize().value();
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
    const auto engine = kvjit::Engine::create().value();
    const auto spec = kvjit::KernelSpec::parse(
        "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,quant_bit=8,cache_mode=page_table,layout=L2HTD");
    const auto kernel = engine.kernel(spec.value(), kvjit::Target::cuda_device(0).value()).value();
    const Stream stream = make_stream();
    std::printf("attn_output[0, 0, 0] = %.4g\n", static_cast<double>(run_step(kernel, stream.get())));
} catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}
