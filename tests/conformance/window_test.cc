// What a window must not change, and must not touch.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

Placed contiguous(int dtype, const std::vector<std::int64_t>& shape) {
    Rng unused(1);
    return {dtype, shape, spread_strides(shape, Spread::kDense, unused), Guard::kAfter};
}

Placed normals(int dtype, const std::vector<std::int64_t>& shape, Rng& rng) {
    Placed tensor = contiguous(dtype, shape);
    tensor.fill([&] { return rng.normal(); });
    return tensor;
}

/// A call of sequences with these starts of new tokens and keys, one kv head, and no tensors yet.
struct Starts {
    const std::int64_t *seqstarts, *kvstarts;
};
Bound bound_of(const kvjit_spec& spec, Starts starts, std::int64_t sequences) {
    Bound bound{};
    bound.spec = spec;
    kvjit_batch_init(&bound.batch);
    kvjit_tensors_init(&bound.tensors);
    bound.batch.batch_size = sequences;
    bound.batch.num_kv_heads = 1;
    bound.batch.seqstarts = starts.seqstarts;
    bound.batch.kvstarts = starts.kvstarts;
    return bound;
}

/// Packed queries, keys and values of sequences that have as many new tokens as keys.
struct Packed {
    kvjit_spec spec;
    Placed query, key, value;

    Packed(const std::string& text, std::int64_t tokens, Rng rng)
        : spec(spec_of("op=MultiHeadAttention," + text)),
          query(normals(spec.t1, {tokens, spec.group, spec.head_dim}, rng)),
          key(normals(spec.t1, {tokens, 1, spec.head_dim}, rng)),
          value(normals(spec.t1, {tokens, 1, spec.head_dim}, rng)) {}

    /// Bits of the output of the sequences that start where `starts` has it, counted from row `first` on.
    std::vector<std::byte> attend(std::int64_t first, const std::vector<std::int64_t>& starts) const {
        Bound bound = bound_of(spec, {starts.data(), starts.data()}, std::ssize(starts) - 1);
        bound.batch.window_left = 70;
        const Placed output = contiguous(spec.t1, {starts.back(), spec.group, spec.head_dim});
        bound.tensors.query = from(query, first);
        bound.tensors.key = from(key, first);
        bound.tensors.value = from(value, first);
        bound.tensors.attn_output = output.view();
        REQUIRE(run_bound(bound, {}) == "");
        return output.packed();
    }

private:
    static kvjit_tensor from(const Placed& tensor, std::int64_t row) {
        kvjit_tensor view = tensor.view();
        view.data = static_cast<std::byte*>(view.data) +
                    row * view.strides[0] * static_cast<std::int64_t>(bytes_of(view.dtype));
        view.shape[0] -= row;
        return view;
    }
};

constexpr std::int64_t kPageBytes = 4096;

/// Memory that nothing can be read from or written to, until a part is opened.
class ClosedMemory {
public:
    explicit ClosedMemory(std::size_t bytes)
        : bytes_(bytes), data_(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        REQUIRE(data_ != MAP_FAILED);
    }
    ClosedMemory(const ClosedMemory&) = delete;
    ~ClosedMemory() { munmap(data_, bytes_); }

    /// `begin` is at a page of the machine's.
    std::byte* open(std::int64_t begin, std::int64_t bytes) {
        REQUIRE(begin % kPageBytes == 0);
        REQUIRE(mprotect(data() + begin, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE) == 0);
        return data() + begin;
    }
    std::byte* data() const { return static_cast<std::byte*>(data_); }

private:
    std::size_t bytes_;
    void* data_;
};

/// A cache 2HTD of one head whose rows have 256 bytes, and the table of one sequence, which is as long as the cache.
/// Keys, values and entries before key `first` can't be touched.
struct HalfOpen {
    static constexpr std::int64_t kTokens = 2048, kRowBytes = 256, kPlane = kTokens * kRowBytes;

    kvjit_spec spec;
    ClosedMemory cache{2 * kPlane}, table{kPageBytes + kTokens * 8};
    const std::int64_t* entries;  // of which those before `first` are closed

    HalfOpen(const std::string& text, std::int64_t first, Rng& rng)
        : spec(spec_of("op=MultiHeadCacheAttention,layout=2HTD,has_window=1," + text)) {
        const std::int64_t page = spec.cache_mode == KVJIT_PAGE_TABLE ? spec.page_size : 1;
        for (const std::int64_t plane : {std::int64_t{0}, kPlane}) {
            std::byte* rows = cache.open(plane + first * kRowBytes, kPlane - first * kRowBytes);
            for (std::int64_t i = 0; i < (kTokens - first) * spec.head_dim; ++i) {
                write_element(rows, spec.t1, i, rng.normal());
            }
        }
        // The first entry that is seen lies at the begin of a page.
        auto* open = reinterpret_cast<std::int64_t*>(table.open(kPageBytes, kTokens * 8));
        for (std::int64_t token = first; token < kTokens; token += page) open[(token - first) / page] = token;
        entries = open - first / page;
    }

    /// Attends `n` new tokens, of which the first sees from key `first` on; "" or the error.
    std::string run(std::int64_t n, std::int64_t first, Rng& rng) const {
        const std::int64_t seqstarts[] = {0, n}, kvstarts[] = {0, kTokens};
        Bound bound = bound_of(spec, {seqstarts, kvstarts}, 1);
        bound.batch.window_left = kTokens - n - first;
        bound.batch.max_tokens = kTokens;
        const bool paged = spec.cache_mode == KVJIT_PAGE_TABLE;
        const std::int64_t shape[] = {1, kTokens / spec.page_size}, all[] = {kTokens};
        auto* begin = const_cast<std::int64_t*>(entries);
        bound.batch.cachestarts = kvjit_tensor_contiguous(begin, KVJIT_I64, paged ? 2 : 1, paged ? shape : all);
        const Placed query = normals(spec.t1, {n, spec.group, spec.head_dim}, rng);
        const Placed output = contiguous(spec.t1, {n, spec.group, spec.head_dim});
        const std::int64_t axes[] = {2, 1, kTokens, spec.head_dim};
        bound.tensors.query = query.view();
        bound.tensors.attn_output = output.view();
        bound.tensors.cache = kvjit_tensor_contiguous(cache.data(), static_cast<kvjit_dtype>(spec.t1), 4, axes);
        return run_bound(bound, {});
    }
};

}  // namespace

TEST_CASE("a sequence gives the bits that it gives among more than the pieces for which tiles are widened") {
    if (options().on_cuda()) return;  // its grids have no such limit
    // Tiles of 12 new tokens, alone; of three times as many among these. Rows are packed by 256, which is no multiple
    // of 20: so blocks of keys that began with the rows' range would begin elsewhere.
    constexpr std::int64_t kOthers = 70000, kTokens = 700;
    const Packed packed("head_dim=8,group=20,t1=f16,has_window=1", kOthers + kTokens, Rng(5));
    std::vector<std::int64_t> starts(kOthers + 1);
    std::iota(starts.begin(), starts.end(), 0);
    starts.push_back(kOthers + kTokens);
    const std::vector<std::byte> among = packed.attend(0, starts), alone = packed.attend(kOthers, {0, kTokens});
    CHECK(std::equal(alone.rbegin(), alone.rend(), among.rbegin()));
}

TEST_CASE("keys, values and table entries before a window are not touched") {
    if (options().on_cuda()) return;       // the emulation knows no pages
    constexpr std::int64_t kFirst = 1552;  // in the middle of tiles and blocks of keys
    for (const std::string type : {"head_dim=64,t1=f32", "head_dim=128,t1=f16"}) {
        for (const std::string mode : {"cache_mode=page_table,page_size=16", "cache_mode=token_table"}) {
            for (const std::string group : {"group=1", "group=6"}) {
                Rng rng(7);
                const HalfOpen call(type + "," + mode + "," + group, kFirst, rng);
                CAPTURE(type);
                CAPTURE(mode);
                CAPTURE(group);
                CHECK(call.run(1, kFirst, rng) == "");    // decode
                CHECK(call.run(300, kFirst, rng) == "");  // prefill
            }
        }
    }
}

}  // namespace kvjit::test
