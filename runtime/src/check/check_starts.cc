#include "check/batch_parts.h"
#include "check/fault.h"
#include "common/abi.h"

namespace kvjit::rt {
namespace {

using gen::KernelSpec;
using gen::Result;

/// A stated upper bound of the lengths that `starts` gives.
struct Bound {
    const char* name;
    std::int64_t value;  // 0: unknown
    const std::int64_t* starts;
    const char* what;
};

Result<void> check_bound(const Bound& bound, std::int64_t batch_size) {
    if (bound.value == 0) return {};
    for (std::int64_t b = 0; b < batch_size; ++b) {
        const std::int64_t length = bound.starts[b + 1] - bound.starts[b];
        if (length <= bound.value) continue;
        return gen::fail(KVJIT_BAD_ARGUMENT, bound.name,
                         text(bound.name, " is ", bound.value, "; sequence ", b, " has ", length, " ", bound.what),
                         bound.value, length, b);
    }
    return {};
}

/// First, as no start_pos suits such a sequence.
Result<void> check_new_keys(const kvjit_batch& batch, std::int64_t b) {
    const std::int64_t n = batch.seqstarts[b + 1] - batch.seqstarts[b];
    const std::int64_t least = batch.kvstarts[b] + n;
    if (batch.kvstarts[b + 1] >= least) return {};
    return refuse_entry("kvstarts", text(b + 1), batch.kvstarts[b + 1], least,
                        text("with ", n, " new tokens, which are keys too, it takes at least ", least, kIfStored), b);
}

Result<void> check_position(const kvjit_batch& batch, std::int64_t b) {
    if (Result<void> keys = check_new_keys(batch, b); !keys) return keys;
    const std::int64_t n = batch.seqstarts[b + 1] - batch.seqstarts[b];
    const std::int64_t m = batch.kvstarts[b + 1] - batch.kvstarts[b];
    const std::int64_t given = batch.start_pos[b];
    if (given < 0) return refuse_entry("start_pos", text(b), given, 0, text("it takes at least 0", kIfStored), b);
    if (given == m - n) return {};
    return refuse_entry("start_pos", text(b), given, m - n,
                        text("with ", m, " keys, ", n, " of them new, it takes ", m - n, kIfStored), b);
}

/// Kernels keep a key's position in 32 bits while they compare it with a query's.
Result<void> check_lengths(const kvjit_batch& batch) {
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        const std::int64_t limit = batch.kvstarts[b] + abi::kMaxKeys;
        if (batch.kvstarts[b + 1] <= limit) continue;
        return refuse_entry("kvstarts", text(b + 1), batch.kvstarts[b + 1], limit,
                            text("it takes at most ", limit, ", a sequence has at most ", abi::kMaxKeys, " keys"), b);
    }
    return {};
}

}  // namespace

Result<void> check_monotonic(const char* name, const std::int64_t* starts, std::int64_t batch_size) {
    if (starts[0] != 0) return refuse_entry(name, "0", starts[0], 0, "starts begin at 0", 0);
    for (std::int64_t b = 0; b < batch_size; ++b) {
        if (starts[b + 1] >= starts[b]) continue;
        return refuse_entry(name, text(b + 1), starts[b + 1], starts[b],
                            text("starts may not fall, ", name, "[", b, "] is ", starts[b]), b);
    }
    return {};
}

Result<void> check_starts(const KernelSpec& spec, const kvjit_batch& batch) {
    const std::int64_t count = batch.batch_size;
    if (count == 0) return {};
    Result<void> result = check_monotonic("seqstarts", batch.seqstarts, count);
    if (result) result = check_bound({"max_seqlen", batch.max_seqlen, batch.seqstarts, "new tokens"}, count);
    if (!result || spec.op == KVJIT_OP_MERGE) return result;
    result = check_monotonic("kvstarts", batch.kvstarts, count);
    if (result) result = check_lengths(batch);
    return result ? check_bound({"max_kvlen", batch.max_kvlen, batch.kvstarts, "keys"}, count) : result;
}

Result<void> check_new_positions(const KernelSpec& spec, const kvjit_batch& batch) {
    for (std::int64_t b = 0; gen::has_cache(spec) && b < batch.batch_size; ++b) {
        if (Result<void> result = check_position(batch, b); !result) return result;
    }
    return {};
}

}  // namespace kvjit::rt
