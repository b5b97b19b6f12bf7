#include "cuda/bounds.h"

#include <algorithm>

#include "batch/batch_view.h"
#include "check/fault.h"
#include "common/abi.h"
#include "generator/operator.h"
#include "generator/score_rules.h"

namespace kvjit::rt {
namespace {

using gen::Result;

struct Shared {
    const char* name;
    std::int64_t kvjit_batch::* member;
};

/// What a mirror must repeat: the values of a batch, outside of arrays, that checks and bounds depend on.
constexpr Shared kShared[] = {
    {"batch_size", &kvjit_batch::batch_size},     {"num_heads", &kvjit_batch::num_heads},
    {"num_kv_heads", &kvjit_batch::num_kv_heads}, {"num_layers", &kvjit_batch::num_layers},
    {"max_tokens", &kvjit_batch::max_tokens},     {"num_blocks", &kvjit_batch::num_blocks},
    {"max_seqlen", &kvjit_batch::max_seqlen},     {"max_kvlen", &kvjit_batch::max_kvlen},
    {"num_repeat", &kvjit_batch::num_repeat},     {"decoding_batches", &kvjit_batch::decoding_batches},
};

/// Arrays that exclude one another, or say how a table is read: a mirror must have the same ones.
constexpr struct {
    const char* name;
    const void* kvjit_batch::* member;
} kSharedArrays[] = {{"kvstarts", &kvjit_batch::kvstarts},
                     {"kvlens", &kvjit_batch::kvlens},
                     {"last_page_len", &kvjit_batch::last_page_len},
                     {"rowstarts", &kvjit_batch::rowstarts},
                     {"row_index", &kvjit_batch::row_index}};

Result<void> check_same_arrays(const kvjit_batch& batch, const kvjit_batch& mirror) {
    for (const auto& [name, member] : kSharedArrays) {
        const bool given = mirror.*member != nullptr;
        if (given == (batch.*member != nullptr)) continue;
        return gen::fail(
            KVJIT_BAD_ARGUMENT, text("host_batch.", name),
            text("host_batch.", name, given ? " is given; the batch has none" : " is null; the batch has it"));
    }
    return {};
}

/// The batch's tensor may be longer, and strides may differ.
Result<void> check_same_tensor(std::string_view name, const kvjit_tensor& given, const kvjit_tensor& wanted) {
    const auto differs = [&](std::string_view member, std::int64_t is, std::int64_t takes) {
        return refuse(KVJIT_BAD_ARGUMENT, text("host_batch.", name, member), is, takes, text("the batch's is ", takes));
    };
    if (given.rank != wanted.rank) return differs(".rank", given.rank, wanted.rank);
    if (given.dtype != wanted.dtype) return differs(".dtype", given.dtype, wanted.dtype);
    for (std::int32_t axis = 0; axis < given.rank; ++axis) {
        if (given.shape[axis] <= wanted.shape[axis]) continue;
        return differs(text(".shape[", axis, "]"), given.shape[axis], wanted.shape[axis]);
    }
    return {};
}

/// Precondition: the batch's tensors have been checked, so that their ranks are legal.
Result<void> check_same_tensors(const kvjit_batch& batch, const kvjit_batch& mirror) {
    constexpr struct {
        const char* name;
        kvjit_tensor kvjit_batch::* member;
    } kTensors[] = {{"cachestarts", &kvjit_batch::cachestarts},
                    {"scalestarts", &kvjit_batch::scalestarts},
                    {"store_slots", &kvjit_batch::store_slots}};
    for (const auto& [name, member] : kTensors) {
        if (auto same = check_same_tensor(name, mirror.*member, batch.*member); !same) return same;
    }
    return {};
}

template <class T>
Result<void> check_same(const char* name, T given, T wanted) {
    if (given == wanted) return {};
    return refuse(KVJIT_BAD_ARGUMENT, text("host_batch.", name), given, wanted, text("the batch's is ", wanted));
}

Result<void> check_same(const kvjit_batch& batch, const kvjit_batch& mirror) {
    Result<void> result;
    for (const Shared& shared : kShared) {
        if (result) result = check_same(shared.name, mirror.*shared.member, batch.*shared.member);
    }
    for (const gen::ScoreRule& rule : gen::kScoreRules) {
        gen::for_each_number(rule, [&](const auto& number) {
            if (result) result = check_same(number.name, mirror.*number.given, batch.*number.given);
        });
    }
    if (result) result = check_same_arrays(batch, mirror);
    return result ? check_same_tensors(batch, mirror) : result;
}

/// The largest `count(b)` of all sequences.
std::int64_t longest(std::int64_t batch_size, const auto& count) {
    std::int64_t most = 0;
    for (std::int64_t b = 0; b < batch_size; ++b) most = std::max<std::int64_t>(most, count(b));
    return most;
}

Result<void> check_known(const char* name, std::int64_t bound, const kvjit_batch& batch) {
    if (bound != 0 || batch.batch_size == 0) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, name,
                     text(name, " is 0; CUDA targets need the upper bound, or options.host_batch to find it"));
}

}  // namespace

Result<LengthBounds> check_device_batch(const gen::KernelSpec& spec, const kvjit_batch& batch,
                                        const kvjit_batch* mirror, const BatchUse& use) {
    if (auto checked = check_batch_scalars(spec, batch, use); !checked) return std::unexpected(checked.error());
    LengthBounds bounds{{0, 0}, batch.max_seqlen, std::min(batch.max_kvlen, abi::kMaxKeys)};
    if (mirror != nullptr) {
        if (auto same = check_same(batch, *mirror); !same) return std::unexpected(same.error());
        if (auto checked = check_batch(spec, *mirror, use); !checked) return std::unexpected(checked.error());
        bounds.rows = rows_of(spec, *mirror);
        const abi::Indices seqstarts = indices(spec, mirror->seqstarts);
        const abi::KeyCounts keys = key_counts(spec, *mirror);
        if (bounds.max_seqlen == 0)
            bounds.max_seqlen = longest(mirror->batch_size, [&](std::int64_t b) { return length(seqstarts, b); });
        if (bounds.max_kvlen == 0 && has_keys(keys))
            bounds.max_kvlen = longest(mirror->batch_size, [&](std::int64_t b) { return key_count(keys, b); });
    }
    if (!gen::attends(spec) || mirror != nullptr) return bounds;
    if (auto known = check_known("max_seqlen", bounds.max_seqlen, batch); !known) return std::unexpected(known.error());
    if (auto known = check_known("max_kvlen", bounds.max_kvlen, batch); !known) return std::unexpected(known.error());
    return bounds;
}

}  // namespace kvjit::rt
