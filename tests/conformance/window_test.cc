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
#include "gpu_access.h"
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

std::int64_t whole_pages(std::int64_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// Memory that nothing can be read from or written to, until a part is opened, to a GPU, too.
class ClosedMemory {
public:
    explicit ClosedMemory(std::int64_t bytes)
        : bytes_(static_cast<std::size_t>(bytes)),
          data_(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        REQUIRE(data_ != MAP_FAILED);
    }
    ClosedMemory(const ClosedMemory&) = delete;
    ~ClosedMemory() {
        for (void* part : opened_) tool::hide_from_gpu(part);
        munmap(data_, bytes_);
    }

    /// `begin` is at a page of the machine's, whose last page is opened whole.
    std::byte* open(std::int64_t begin, std::int64_t bytes) {
        REQUIRE(begin % kPageBytes == 0);
        const auto whole = static_cast<std::size_t>(whole_pages(bytes));
        REQUIRE(mprotect(data() + begin, whole, PROT_READ | PROT_WRITE) == 0);
        tool::show_to_gpu(data() + begin, whole);
        opened_.push_back(data() + begin);
        return data() + begin;
    }
    std::byte* data() const { return static_cast<std::byte*>(data_); }

private:
    std::size_t bytes_;
    void* data_;
    std::vector<void*> opened_;
};

/// A cache of one sequence and one head.
constexpr std::int64_t kTokens = 1696;
/// The first key that is seen, in the middle of tiles, blocks of keys and pages. Scales have to begin at 16 bytes.
std::int64_t first_key(const kvjit_spec& spec) {
    return spec.quant_bit != 0 ? 1560 : 1563;
}

/// A tensor 2HTD of which no key and no value before the first one can be touched: its row begins at a page of the
/// machine's, of keys and of values.
class HalfOpenTensor {
public:
    /// `make` gives the elements' numbers.
    template <class Make>
    HalfOpenTensor(int dtype, std::int64_t elements, std::int64_t first, Make make)
        : dtype_(dtype),
          elements_(elements),
          row_(elements * static_cast<std::int64_t>(bytes_of(dtype))),
          plane_(whole_pages(kTokens * row_) + kPageBytes),
          first_(first),
          before_(whole_pages(first * row_)),
          memory_(2 * plane_ + kPageBytes) {
        for (const std::int64_t plane : {std::int64_t{0}, plane_}) {
            std::byte* rows = memory_.open(plane + before_, (kTokens - first) * row_);
            for (std::int64_t i = 0; i < (kTokens - first) * elements_; ++i) write_element(rows, dtype_, i, make());
        }
    }
    kvjit_tensor view() const {
        const std::int64_t shape[] = {2, 1, kTokens, elements_};
        kvjit_tensor tensor = kvjit_tensor_contiguous(memory_.data() + before_ - first_ * row_,
                                                      static_cast<kvjit_dtype>(dtype_), 4, shape);
        tensor.strides[0] = plane_ / static_cast<std::int64_t>(bytes_of(dtype_));
        return tensor;
    }

private:
    int dtype_;
    std::int64_t elements_, row_;
    std::int64_t plane_;  // bytes from keys to values
    std::int64_t first_;
    std::int64_t before_;  // of a plane, which can't be touched
    ClosedMemory memory_;
};

/// Cache and table of which nothing before the first key that is seen can be touched.
struct HalfOpen {
    kvjit_spec spec;
    HalfOpenTensor cache, scale;
    ClosedMemory table{kPageBytes + kTokens * 8};
    std::int64_t* entries;  // of which those before the first key's are closed

    HalfOpen(const std::string& text, Rng& rng)
        : spec(spec_of("op=MultiHeadCacheAttention,layout=2HTD,has_window=1," + text)),
          cache(code_row(spec).dtype, spec.head_dim, first_key(spec),
                [&] { return spec.quant_bit != 0 ? static_cast<double>(rng.between(-127, 127)) : rng.normal(); }),
          scale(scale_row(spec).dtype, spec.quant_bit != 0 ? spec.head_dim / spec.quant_group : 8, first_key(spec),
                [&] { return 0.01 * (1 + rng.uniform()); }) {
        const std::int64_t page = is_paged() ? spec.page_size : 1, first = first_key(spec) / page;
        auto* open = reinterpret_cast<std::int64_t*>(table.open(kPageBytes, kTokens * 8));
        for (std::int64_t p = first; p * page < kTokens; ++p) open[p - first] = p * page;
        entries = open - first;
    }
    bool is_paged() const { return spec.cache_mode == KVJIT_PAGE_TABLE; }

    /// Attends `n` new tokens, of which the first sees from first_key() on; "" or the error.
    std::string run(std::int64_t n, Rng& rng, const RunOptions& options = {}) const {
        const Placed seqstarts = Placed::integers({0, n}, KVJIT_I64, Guard::kAfter),
                     kvstarts = Placed::integers({0, kTokens}, KVJIT_I64, Guard::kAfter);
        Bound bound = bound_of(spec, {seqstarts.data<std::int64_t>(), kvstarts.data<std::int64_t>()}, 1);
        bound.batch.window_left = kTokens - n - first_key(spec);
        bound.batch.max_tokens = bound.batch.max_kvlen = kTokens;
        bound.batch.max_seqlen = n;
        const std::int64_t shape[] = {1, kTokens / spec.page_size}, all[] = {kTokens};
        bound.batch.cachestarts =
            kvjit_tensor_contiguous(entries, KVJIT_I64, is_paged() ? 2 : 1, is_paged() ? shape : all);
        const Placed query = normals(spec.t1, {n, spec.group, spec.head_dim}, rng);
        const Placed output = contiguous(spec.t1, {n, spec.group, spec.head_dim});
        bound.tensors.query = query.view();
        bound.tensors.attn_output = output.view();
        bound.tensors.cache = cache.view();
        if (spec.quant_bit != 0) bound.tensors.scale = scale.view();
        return BoundPlan(bound, options).run(bound);  // a GPU reaches all of it
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

// A tile of rows then begins in the middle of one head's tokens and goes on with the next one's first.
TEST_CASE("tiles of rows of several heads see what each row's window has") {
    for (const std::string spec :
         {"op=MultiHeadCacheAttention,head_dim=64,group=1,layout=T2HD",
          "op=MultiHeadCacheAttention,head_dim=64,group=3,layout=T2HD",
          "op=MultiHeadAttention,head_dim=64,group=1,t1=f32",
          "op=MultiHeadCacheAttention,head_dim=64,group=2,layout=T2HD,quant_bit=8,quant_group=32"}) {
        CAPTURE(spec);
        Case which = ragged(spec + ",has_window=1");
        which.batch_size = 24;
        which.num_kv_heads = 13;
        which.new_tokens = NewTokens::kFew;
        which.window_left = 3;
        which.window_right = 0;
        check_against_oracle(which, 52, 53);
    }
}

/// A call of the case in which some sequence has keys, but more new tokens than keys.
Call outnumbered(const Case& which) {
    const auto fits = [&](std::uint64_t seed) {
        const Problem problem = make_call(which, seed, 54).problem;
        for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
            if (problem.kv_tokens(b) > 0 && problem.kv_tokens(b) < problem.new_tokens(b)) return true;
        }
        return false;
    };
    return make_call(which, find_seed(1, fits), 54);
}

// The first rows' positions are negative then, and an open window reaches as far as 64 bits count: a difference of both
// overflows.
TEST_CASE("new tokens that outnumber the keys, under a window that is open on the left") {
    for (const NewTokens tokens : {NewTokens::kFew, NewTokens::kTileEdge}) {
        for (const std::string group : {"1", "4"}) {
            Case which = ragged("op=MultiHeadAttention,head_dim=64,is_causal=0,has_window=1,group=" + group);
            which.new_tokens = tokens;
            which.past_tokens = PastTokens::kFew;
            which.window_left = -1;
            which.window_right = 3;
            Call call = outnumbered(which);
            check_against_oracle(call);
        }
    }
}

TEST_CASE("keys, values, their scales and table entries before a window are not touched") {
    constexpr std::int64_t kRows = 40;  // of prefill
    for (const std::string type :
         {"head_dim=64,t1=f32", "head_dim=128,t1=f16", "head_dim=256,t1=f16", "head_dim=128,quant_bit=8,quant_group=32",
          "head_dim=128,quant_bit=8,quant_group=128,t3=f16"}) {
        for (const std::string cache :
             {"cache_mode=page_table,page_size=16,group=6", "cache_mode=token_table,group=1"}) {
            Rng rng(7);
            const HalfOpen call(type + "," + cache, rng);
            CAPTURE(type);
            CAPTURE(cache);
            CHECK(call.run(1, rng) == "");      // decode
            CHECK(call.run(kRows, rng) == "");  // prefill
            if (!options().on_cuda()) continue;
            // A kernel checks the table, and the plan chooses how it splits the keys.
            CHECK(call.run(1, rng, {.split_keys = 0, .device_checks = true}) == "");
            CHECK(call.run(kRows, rng, {.split_keys = 0, .device_checks = true}) == "");
        }
    }
}

}  // namespace kvjit::test
