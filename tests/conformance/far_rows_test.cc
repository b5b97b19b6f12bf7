// Packed tensors, masks and heads whose rows lie so far apart that their offsets take more than 32 bits.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/options.h"
#include "conformance/parts.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "conformance/sparse_memory.h"

namespace kvjit::test {
namespace {

using Member = kvjit_tensor kvjit_tensors::*;

/// The elements of a tensor, copied to one of the same shape from `axis` on.
void copy_elements(const kvjit_tensor& from, const kvjit_tensor& to, int axis = 0, std::int64_t at = 0,
                   std::int64_t place = 0) {
    const auto bytes = static_cast<std::int64_t>(bytes_of(from.dtype));
    if (axis == from.rank) {
        std::memcpy(static_cast<char*>(to.data) + place * bytes, static_cast<const char*>(from.data) + at * bytes,
                    static_cast<std::size_t>(bytes));
        return;
    }
    for (std::int64_t i = 0; i < from.shape[axis]; ++i) {
        copy_elements(from, to, axis + 1, at + i * from.strides[axis], place + i * to.strides[axis]);
    }
}

/// A tensor's copy with `stride` elements from one index of `axis` to the next.
class FarTensor {
public:
    FarTensor(const kvjit_tensor& near, int axis, std::int64_t stride) : near_(near), far_(near) {
        std::int64_t elements = near.shape[axis] * stride;
        for (int i = 0; i < near.rank; ++i) elements += i == axis ? 0 : near.shape[i] * near.strides[i];
        memory_ = std::make_unique<SparseMemory>(static_cast<std::size_t>(elements) * bytes_of(near.dtype));
        if (!memory_->exists()) return;
        far_.strides[axis] = stride;
        far_.data = memory_->data();
        copy_elements(near_, far_);
        memory_->show_written();
    }
    bool exists() const { return memory_->exists(); }
    const kvjit_tensor& tensor() const { return far_; }
    void copy_back() const { copy_elements(far_, near_); }

private:
    kvjit_tensor near_, far_;
    std::unique_ptr<SparseMemory> memory_;
};

/// Runs a call with one of its tensors spread along an axis; false where there is no address space for that.
bool run_far(Bound bound, Member member, int axis) {
    kvjit_tensor& tensor = bound.tensors.*member;
    REQUIRE(tensor.data != nullptr);
    // Two heads are not enough for a stride of 2^30 to pass 2^31 elements; lse's rows may be as few.
    const FarTensor far(tensor, axis, std::int64_t{1} << (tensor.rank == 2 ? 31 : 30));
    if (!far.exists()) {
        MESSAGE("skipped: no address space for rows that far apart here");
        return false;
    }
    tensor = far.tensor();
    REQUIRE(run_bound(bound, {}) == "");
    far.copy_back();
    return true;
}

void check_far(const std::string& spec, NewTokens tokens, Member member, int axis) {
    Case which = ragged(spec);
    which.new_tokens = tokens;
    which.batch_size = 3;
    which.num_kv_heads = 3;
    which.past_tokens = PastTokens::kFew;
    Call call = make_call(which, 181, 182);
    call.remember();
    if (run_far(bind(call), member, axis)) CHECK(judge(call) == "");
}

TEST_CASE("far rows: tokens and heads of queries, keys, values, masks, outputs and lse") {
    const std::string spec = "op=MultiHeadAttention,head_dim=64,group=2,t1=f16,attn_mask=3,is_causal=0";
    for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
        check_far(spec, tokens, &kvjit_tensors::query, 0);
        check_far(spec, tokens, &kvjit_tensors::key, 1);
        check_far(spec, tokens, &kvjit_tensors::value, 1);
        check_far(spec, tokens, &kvjit_tensors::attn_mask, 0);
        check_far(spec, tokens, &kvjit_tensors::attn_mask, 1);
        check_far(spec, tokens, &kvjit_tensors::attn_output, 0);
        check_far(spec, tokens, &kvjit_tensors::lse, 0);
    }
}

TEST_CASE("far rows: heads of a cache and of its scales") {
    const std::string spec = "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f16,layout=2HTD";
    check_far(spec, NewTokens::kOne, &kvjit_tensors::cache, 1);
    check_far(spec + ",quant_bit=8,quant_group=32", NewTokens::kOne, &kvjit_tensors::scale, 1);
}

TEST_CASE("far rows: tokens that are stored and loaded") {
    const std::string spec = "op=KeyValueCache,head_dim=64,t1=f16,layout=T2HD";
    for (const Member member :
         {&kvjit_tensors::current_key, &kvjit_tensors::current_value, &kvjit_tensors::key, &kvjit_tensors::value}) {
        check_far(spec, NewTokens::kFew, member, 0);
    }
}

TEST_CASE("far rows: parts, tokens and heads that Merge joins") {
    Case which = ragged("op=MultiHeadAttention,head_dim=64,group=1,t1=f16");
    which.batch_size = 1;
    which.num_kv_heads = 3;
    which.new_tokens = NewTokens::kFew;
    Call merged = make_call(which, 183, 184);
    REQUIRE(merged.problem.seqstarts.back() > 2);
    Parts made(merged.problem, 3);
    made.draw(185);
    const Bound near = made.merge_into(merged);
    REQUIRE(run_bound(near, {}) == "");
    const auto output = merged.attn_output.packed(), lse = merged.lse.packed();
    for (const Member member : {&kvjit_tensors::partial_output, &kvjit_tensors::partial_lse}) {
        for (const int axis : {0, 1, 2}) {
            CAPTURE(axis);
            for (Placed* written : {&merged.attn_output, &merged.lse}) written->fill([] { return 0.0; });
            if (!run_far(near, member, axis)) return;
            CHECK(merged.attn_output.packed() == output);
            CHECK(merged.lse.packed() == lse);
        }
    }
}

}  // namespace
}  // namespace kvjit::test
