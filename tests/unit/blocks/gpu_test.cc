// Blocks that are a GPU's memory, against a stand-in for its driver: what is enqueued, where, in which order.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "operations.h"
#include "random_cache.h"
#include "support.h"

namespace kvjit::test {
namespace {

void* const kStream = reinterpret_cast<void*>(0x2000);  // the caller's own
void* const kContext = reinterpret_cast<void*>(0x5000);

How on_stream() {
    How how;
    how.cuda.stream = kStream;
    return how;
}

/// The process keeps a GPU's primary context once it has taken it: these tests have one of their own current.
struct Gpu : FakeMachine {
    Gpu() { fake_cuda_make_current(0, kContext); }

    /// From now on the model lies in the GPU's memory, and what isn't there is the host's.
    void take(CacheModel& model) {
        model.set_lies_in(KVJIT_MEMORY_CUDA);
        for (const ModelTensor& tensor : model.parts()) {
            state().device_memory[reinterpret_cast<std::size_t>(tensor.memory.data())] = tensor.memory.size();
        }
    }
    /// Of calls that work, the names.
    std::vector<std::string> enqueued() {
        std::vector<std::string> names;
        for (const auto& [name, stream] : state().enqueued) {
            names.push_back(name);
            CHECK(stream == kStream);
        }
        return names;
    }
};

using Names = std::vector<std::string>;
using Ids = std::vector<std::int64_t>;

constexpr const char* kDense = "op=KeyValueCache,head_dim=8,cache_mode=block_table,page_size=4,layout=N2LTHD";
constexpr const char* kLayers = "op=KeyValueCache,head_dim=8,cache_mode=block_table,page_size=4,layout=LNTH2D";

/// A cache whose strides are its layout's.
std::unique_ptr<CacheModel> plain_cache(const char* text) {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        Rng random(seed);
        auto made = std::make_unique<CacheModel>(parsed(text), ModelSize{.heads = 2, .layers = 3, .blocks = 5}, random);
        const ModelTensor& tensor = made->parts().front();
        std::int64_t dense = 1;
        bool plain = true;
        for (std::size_t axis = tensor.axes.size(); axis-- > 0; dense *= tensor.extents[axis]) {
            plain = plain && tensor.strides[axis] == dense;
        }
        if (plain) return made;
    }
    throw std::logic_error(std::string("none of 1000 seeds makes a plain cache of ") + text);
}

TEST_CASE("blocks of host and GPU are moved as the oracle does it, each end in the memory that it is said to be in") {
    each_seed(600, [](std::uint64_t seed) {
        Gpu gpu;
        Rng random(seed);
        const RandomPair pair = random_pair(random);
        INFO("KVJIT_TEST_SEED=", seed, " blocks_gpu_test -tc='blocks of host*': ", pair.first, " and ", pair.second);
        CacheModel first(parsed(pair.first), pair.size, random), second(parsed(pair.second), pair.size, random);
        if (seed % 3 != 1) gpu.take(first);
        if (seed % 3 != 2) gpu.take(second);
        check_operations(first, second, on_stream(), random);
    });
}

TEST_CASE("a dense block is one copy, one of layers one copy of rows") {
    Gpu gpu;
    const auto dense = plain_cache(kDense), layers = plain_cache(kLayers);
    gpu.take(*dense);
    gpu.take(*layers);
    const Ids from{0}, to{1};
    REQUIRE(copy_blocks(dense->blocks(), dense->blocks(), from.data(), to.data(), 1, on_stream().cuda).has_value());
    REQUIRE(copy_blocks(layers->blocks(), layers->blocks(), from.data(), to.data(), 1, on_stream().cuda).has_value());
    REQUIRE(zero_blocks(dense->blocks(), to.data(), 1, on_stream().cuda).has_value());
    REQUIRE(zero_blocks(layers->blocks(), to.data(), 1, on_stream().cuda).has_value());
    CHECK(gpu.enqueued() == Names{"cuMemcpyDtoDAsync", "cuMemcpy2DAsync", "cuMemsetD8Async", "cuMemsetD2D8Async"});
}

TEST_CASE("rows that are too far apart for the driver are copied one by one") {
    Gpu gpu;
    const auto host = plain_cache(kLayers);
    kvjit_blocks far = host->blocks();
    kvjit_tensors tensors = host->tensors();
    tensors.cache.strides[0] = std::int64_t{1} << 30;  // of 4 bytes each; nobody looks behind the addresses
    tensors.cache.data = reinterpret_cast<void*>(std::size_t{1} << 40);
    far.tensors = &tensors;
    far.memory = KVJIT_MEMORY_CUDA;
    gpu.state().busy[kStream] = {};  // and nothing is done
    const Ids ids{2};
    REQUIRE(zero_blocks(far, ids.data(), 1, on_stream().cuda).has_value());
    REQUIRE(copy_blocks(far, host->blocks(), ids.data(), ids.data(), 1, on_stream().cuda).has_value());
    CHECK(gpu.enqueued() == Names{"cuMemsetD8Async", "cuMemsetD8Async", "cuMemsetD8Async", "cuMemcpyDtoHAsync",
                                  "cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync"});
}

TEST_CASE("a swap between host and GPU keeps what it moves aside in the GPU's memory, and frees it behind that") {
    Gpu gpu;
    const auto host = plain_cache(kDense), device = plain_cache(kDense);
    gpu.take(*device);
    const Ids a{0, 1}, b{3, 4};
    REQUIRE(swap_blocks(host->blocks(), device->blocks(), a.data(), b.data(), 2, on_stream().cuda).has_value());
    CHECK(gpu.enqueued() == Names{"cuMemAllocAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync",
                                  "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemFreeAsync"});
}

TEST_CASE("a chain takes no memory, a cycle a block's") {
    Gpu gpu;
    const auto cache = plain_cache(kDense);
    gpu.take(*cache);
    const Ids from{0, 1}, chain{1, 2}, cycle{1, 0};
    REQUIRE(move_blocks(cache->blocks(), from.data(), chain.data(), 2, on_stream().cuda).has_value());
    CHECK(gpu.count("cuMemAllocAsync") == 0);
    CHECK(gpu.count("cuMemcpyDtoDAsync") == 2);
    REQUIRE(move_blocks(cache->blocks(), from.data(), cycle.data(), 2, on_stream().cuda).has_value());
    CHECK(gpu.count("cuMemAllocAsync") == 1);
    CHECK(gpu.count("cuMemFreeAsync") == 1);
    CHECK(gpu.count("cuMemcpyDtoDAsync") == 5);
}

TEST_CASE("nothing is waited for, and all is done in the order of the stream") {
    Gpu gpu;
    const auto cache = plain_cache(kDense);
    gpu.take(*cache);
    gpu.state().busy[kStream] = {};
    const auto before = cache->memory();
    const Bytes was = cache->content(0);
    const Ids from{0, 1}, to{1, 0};
    REQUIRE(move_blocks(cache->blocks(), from.data(), to.data(), 2, on_stream().cuda).has_value());
    CHECK(cache->memory() == before);
    CHECK(gpu.count("cuStreamSynchronize") == 0);
    for (const auto& work : gpu.state().busy[kStream]) work();
    CHECK(cache->content(1) == was);
}

TEST_CASE("another stream's capture is none of its business") {
    Gpu gpu;
    const auto host = plain_cache(kDense), device = plain_cache(kDense);
    gpu.take(*device);
    gpu.state().capturing = reinterpret_cast<void*>(0x2100);
    const Ids a{0}, b{3};
    CHECK(swap_blocks(host->blocks(), device->blocks(), a.data(), b.data(), 1, on_stream().cuda).has_value());
}

TEST_CASE("ids that are refused reach no driver") {
    Gpu gpu;
    const auto cache = plain_cache(kDense);
    gpu.take(*cache);
    const Ids from{0}, to{5};
    CHECK_FALSE(copy_blocks(cache->blocks(), cache->blocks(), from.data(), to.data(), 1, on_stream().cuda).has_value());
    CHECK(gpu.state().calls.empty());
}

TEST_CASE("a GPU that there is not is told by its ordinal") {
    Gpu gpu;
    const auto cache = plain_cache(kDense);
    gpu.take(*cache);
    How how = on_stream();
    how.cuda.device = 7;
    const Ids ids{0};
    const Result<void> done = zero_blocks(cache->blocks(), ids.data(), 1, how.cuda);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().status() == KVJIT_CUDA_ERROR);
    CHECK(done.error().argument() == std::string("device"));
    CHECK(done.error().value() == 7);
}

TEST_CASE("whatever call fails, the error says so, and memory goes back") {
    int failing = 0;
    for (int call = 1;; ++call) {
        CAPTURE(call);
        Gpu gpu;
        const auto host = plain_cache(kLayers), device = plain_cache(kDense);
        gpu.take(*device);
        const Ids a{0, 1}, b{3, 4};
        gpu.state().fail_code = rt::cuda::kIllegalAddress;
        gpu.state().fail_at = call;
        const Result<void> done =
            swap_blocks(host->blocks(), device->blocks(), a.data(), b.data(), 2, on_stream().cuda);
        const bool failed = gpu.state().fail_at == 0;
        gpu.state().fail_at = 0;
        CHECK(gpu.state().allocations.empty());
        if (!failed) {
            CHECK(done.has_value());
            break;
        }
        if (done) continue;  // what only cleans up
        ++failing;
        CHECK(done.error().status() == KVJIT_CUDA_ERROR);
        CHECK(contains(done.error().message(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    }
    CHECK(failing >= 9);
}

TEST_CASE("memory that there is not is said, with how much it was") {
    Gpu gpu;
    const auto cache = plain_cache(kDense);
    gpu.take(*cache);
    gpu.state().fail_code = rt::cuda::kOutOfMemory;
    gpu.state().fail_at = 3;  // after asking for the context and its GPU
    const Ids a{0}, b{1};
    const Result<void> done = swap_blocks(cache->blocks(), cache->blocks(), a.data(), b.data(), 1, on_stream().cuda);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().status() == KVJIT_OUT_OF_MEMORY);
    CHECK(contains(done.error().message(),
                   "allocating " + std::to_string(cache->content(0).size()) + " bytes for a block"));
}

}  // namespace
}  // namespace kvjit::test
