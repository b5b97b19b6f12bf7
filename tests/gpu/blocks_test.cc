// Blocks moved in the machine's memory, and between it and the host's: on a GPU by its driver, on the emulator by the
// CPU.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "call/arrays.h"
#include "gpu/machine.h"
#include "kvjit/blocks.hpp"
#include "limits/cuda/gpu.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kLayers = 3, kBlocks = 6, kTokens = 4, kHeads = 2, kDim = 32;
constexpr std::int64_t kElements = kBlocks * 2 * kLayers * kTokens * kHeads * kDim;

using Floats = std::vector<float>;

/// Calls `each(block, place in the block, place in the pool)` for all elements of a pool.
template <class Each>
void for_each_element(const std::string& layout, const kvjit_tensor& pool, const Each& each) {
    const std::vector<LayoutAxis> axes = layout_axes(layout);
    for (std::int64_t block = 0; block < kBlocks; ++block) {
        for (std::int64_t place = 0; place < kElements / kBlocks; ++place) {
            std::int64_t rest = place;
            const auto next = [&](std::int64_t extent) { return std::exchange(rest, rest / extent) % extent; };
            const std::int64_t d = next(kDim), head = next(kHeads), token = next(kTokens), layer = next(kLayers);
            const std::int64_t at = offset_of({block, token, layer, next(2), head, d}, axes, pool.strides);
            each(block, static_cast<std::size_t>(place), static_cast<std::size_t>(at));
        }
    }
}

/// Blocks by their elements, whatever the layout.
using Contents = std::vector<Floats>;

/// A pool in the host's memory or the machine's.
class Pool {
public:
    Pool(const char* layout, bool on_host, float first) : layout_(layout), on_host_(on_host), host_(kElements) {
        for (std::size_t i = 0; i < host_.size(); ++i) host_[i] = first + static_cast<float>(i);
        memory_ = on_host ? static_cast<void*>(host_.data()) : machine().allocate(bytes());
        if (!on_host) machine().upload(memory_, host_.data(), bytes());
        spec_ = *KernelSpec::parse("op=KeyValueCache,head_dim=32,t1=f32,cache_mode=block_table,page_size=4,layout=" +
                                   layout_);
        batch_.num_kv_heads = kHeads;
        batch_.num_layers = kLayers;
        batch_.num_blocks = kBlocks;
        tensors_.cache = dense_tensor(memory_, KVJIT_F32, cache_shape(spec_, batch_, layout_, kDim));
    }
    ~Pool() {
        if (!on_host_) machine().release(memory_);
    }
    Pool(const Pool&) = delete;

    Blocks blocks() const {
        const bool cuda = !on_host_ && machine().target() != "cuda-emulated";
        return {spec_, batch_, tensors_, cuda ? KVJIT_MEMORY_CUDA : KVJIT_MEMORY_HOST};
    }
    Contents contents() {
        if (!on_host_) machine().download(host_.data(), memory_, bytes());
        Contents all(kBlocks, Floats(kElements / kBlocks));
        for_each_element(layout_, tensors_.cache, [&](std::int64_t block, std::size_t place, std::size_t at) {
            all[static_cast<std::size_t>(block)][place] = host_[at];
        });
        return all;
    }

private:
    static std::size_t bytes() { return kElements * sizeof(float); }

    std::string layout_;
    bool on_host_;
    Floats host_;
    void* memory_;
    KernelSpec spec_;
    Batch batch_;
    Tensors tensors_;
};

BlocksOptions on_stream(const MachineStream& stream) {
    BlocksOptions options;
    if (machine().target() == "cuda-emulated") return options;
    options.stream = stream.get();
    options.device = gpu_of_machine().ordinal();
    return options;
}

void require(const Result<void>& done) {
    const std::string message = done ? "" : done.error().message();
    REQUIRE_MESSAGE(done.has_value(), message);
}

using Ids = std::vector<std::int64_t>;

TEST_CASE("blocks go from one layout to another, in the machine's memory and between it and the host's") {
    machine().enter();
    const MachineStream stream(machine());
    for (const char* layout : {"N2LTHD", "LNTH2D", "2NHLTD"}) {
        for (const bool from_host : {false, true}) {
            for (const bool to_host : {false, !from_host}) {
                CAPTURE(layout);
                CAPTURE(from_host);
                CAPTURE(to_host);
                Pool from(layout, from_host, 0), to("LHNT2D", to_host, 1 << 20);
                const Contents source = from.contents();
                Contents wanted = to.contents();
                const Ids from_ids{4, 0, 4}, to_ids{1, 2, 5};
                for (std::size_t i = 0; i < 3; ++i)
                    wanted[static_cast<std::size_t>(to_ids[i])] = source[static_cast<std::size_t>(from_ids[i])];
                require(copy_blocks(from.blocks(), to.blocks(), from_ids.data(), to_ids.data(), 3,
                                    from_host && to_host ? BlocksOptions() : on_stream(stream)));
                machine().finish();
                CHECK((to.contents() == wanted));
            }
        }
    }
}

TEST_CASE("blocks change places in cycles, with the host's memory, and become zeros") {
    machine().enter();
    const MachineStream stream(machine());
    Pool pool("LNTH2D", false, 0), host("N2LTHD", true, 1 << 20);
    const Contents was = pool.contents(), host_was = host.contents();
    const BlocksOptions options = on_stream(stream);
    const Ids from{0, 1, 2}, to{1, 2, 0}, here{3}, there{5}, gone{4};
    require(move_blocks(pool.blocks(), from.data(), to.data(), 3, options));
    require(swap_blocks(pool.blocks(), host.blocks(), here.data(), there.data(), 1, options));
    require(zero_blocks(pool.blocks(), gone.data(), 1, options));
    machine().finish();
    CHECK((pool.contents() == Contents{was[2], was[0], was[1], host_was[5], Floats(was[4].size(), 0), was[5]}));
    Contents host_wanted = host_was;
    host_wanted[5] = was[3];
    CHECK((host.contents() == host_wanted));
}

}  // namespace
}  // namespace kvjit::test
