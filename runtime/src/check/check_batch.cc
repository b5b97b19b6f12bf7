#include "check/check_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "batch/batch_view.h"
#include "check/arithmetic.h"
#include "check/batch_parts.h"
#include "check/fault.h"
#include "check/view.h"
#include "generator/operator.h"
#include "generator/score_rules.h"

namespace kvjit::rt {
namespace {

using gen::KernelSpec;
using gen::Result;

bool always(const KernelSpec&) {
    return true;
}

/// Limit of counts, so that products of a few of them fit 64 bits.
constexpr std::int64_t kMaxCount = 0x7fffffff;

struct Scalar {
    const char* name;
    std::int64_t kvjit_batch::* member;
    std::int64_t least, most;
    bool (*taken)(const KernelSpec&);
};

constexpr Scalar kScalars[] = {
    {"batch_size", &kvjit_batch::batch_size, 0, kMaxCount, always},
    {"num_heads", &kvjit_batch::num_heads, 0, kMaxCount, gen::has_query_heads},
    {"num_kv_heads", &kvjit_batch::num_kv_heads, 0, kMaxCount, gen::has_keys},
    {"num_layers", &kvjit_batch::num_layers, 1, kMaxCount, gen::has_cache},
    {"max_tokens", &kvjit_batch::max_tokens, 0, kMaxInt64, gen::has_max_tokens},
    {"num_blocks", &kvjit_batch::num_blocks, 0, kMaxInt64, gen::has_num_blocks},
    {"max_seqlen", &kvjit_batch::max_seqlen, 0, kMaxInt64, always},
    {"max_kvlen", &kvjit_batch::max_kvlen, 0, kMaxInt64, gen::has_keys},
    {"num_repeat", &kvjit_batch::num_repeat, 1, kMaxCount, gen::loads},
};

/// The slope of each head is looked at.
std::int64_t most_heads(const KernelSpec& spec) {
    return gen::attends(spec) && spec.is_alibi != 0 ? kMaxSlopes : kMaxCount;
}

/// What a count takes at most: of heads as many as the other heads' limit allows, so that each has one limit.
std::int64_t most_of(const Scalar& scalar, const KernelSpec& spec) {
    if (scalar.member == &kvjit_batch::num_heads) return most_heads(spec);
    if (scalar.member == &kvjit_batch::num_kv_heads && gen::attends(spec)) return most_heads(spec) / spec.group;
    return scalar.most;
}

Result<void> check_scalars(const KernelSpec& spec, const kvjit_batch& batch) {
    for (const Scalar& scalar : kScalars) {
        if (!scalar.taken(spec)) continue;
        Result<void> result = check_range(scalar.name, batch.*scalar.member, scalar.least, most_of(scalar, spec));
        if (!result) return result;
    }
    return gen::attends(spec) ? check_range("decoding_batches", batch.decoding_batches, 0, batch.batch_size)
                              : Result<void>();
}

/// For a batch that gives the number of query heads or of kv heads alone.
Result<void> check_group(const KernelSpec& spec, const kvjit_batch& batch) {
    if (batch.num_heads == 0) return check_range("num_kv_heads", batch.num_kv_heads, 1, most_heads(spec) / spec.group);
    return check_whole_groups(spec, batch.num_heads, "num_heads");
}

Result<void> check_heads(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_query_heads(spec)) {
        const char* name = batch.num_kv_heads == 0 ? "num_heads" : "num_kv_heads";
        return check_range(name, kv_heads(spec, batch), 1, kMaxCount);
    }
    if (!gen::attends(spec) || batch.num_heads + batch.num_kv_heads == 0) {
        return check_range("num_heads", batch.num_heads, 1, most_heads(spec));
    }
    if (batch.num_kv_heads == 0 || batch.num_heads == 0) return check_group(spec, batch);
    const std::int64_t heads = batch.num_kv_heads * spec.group;
    if (batch.num_heads == heads) return {};
    return refuse(
        KVJIT_BAD_ARGUMENT, "num_heads", batch.num_heads, heads,
        text("with ", batch.num_kv_heads, " kv heads and the spec's group ", spec.group, " it takes ", heads));
}

Result<void> check_layers(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_cache(spec) || batch.num_layers == 1 || gen::layout_axes(spec).contains('L')) return {};
    if (has_layer_tables(spec, batch) || batch.store_slots.rank == 2) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "num_layers", batch.num_layers, 1,
                  text("layout ", gen::layout_axes(spec), " has no axis L, nor has cachestarts, so it takes 1"));
}

Result<void> check_bytes(const char* name, std::int64_t value, std::int64_t row_elements) {
    const std::int64_t limit = most_rows(row_elements);
    if (value <= limit) return {};
    return refuse(KVJIT_BAD_ARGUMENT, name, value, limit,
                  text("its bytes have to fit 64 bits, so it takes at most ", limit));
}

Result<void> check_cache_bytes(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_cache(spec)) return {};
    const std::int64_t token =
        saturating_product(batch.num_layers, std::int64_t{2}, kv_heads(spec, batch), std::int64_t{spec.head_dim});
    if (gen::has_max_tokens(spec)) {
        if (Result<void> tokens = check_bytes("max_tokens", batch.max_tokens, token); !tokens) return tokens;
    }
    const std::int64_t block_tokens =
        gen::is_paged(spec) ? spec.page_size : std::max<std::int64_t>(1, batch.max_tokens);
    if (gen::has_num_blocks(spec))
        return check_bytes("num_blocks", batch.num_blocks, saturating_product(token, block_tokens));
    if (gen::has_cache_tensors(spec)) return {};
    return check_bytes(
        "num_layers", batch.num_layers,
        saturating_product(block_tokens, std::int64_t{2}, kv_heads(spec, batch), std::int64_t{spec.head_dim}));
}

struct IndexArray {
    const char* name;
    const void* kvjit_batch::* member;
    bool (*needed)(const KernelSpec&);
    bool optional;
};

constexpr IndexArray kIndexArrays[] = {
    {"seqstarts", &kvjit_batch::seqstarts, always, false},
    {"kvstarts", &kvjit_batch::kvstarts, gen::has_keys, true},
    {"kvlens", &kvjit_batch::kvlens, gen::has_keys, true},
    {"last_page_len", &kvjit_batch::last_page_len, gen::has_keys, true},
    {"rowstarts", &kvjit_batch::rowstarts, gen::has_cache, true},
    {"row_index", &kvjit_batch::row_index, gen::has_cache, true},
};
constexpr IndexArray kStartPos = {"start_pos", &kvjit_batch::start_pos, gen::has_cache, true};

Result<void> check_pointer(const KernelSpec& spec, const kvjit_batch& batch, const IndexArray& array) {
    if (!array.needed(spec)) return {};
    const void* pointer = batch.*array.member;
    if (pointer == nullptr && !array.optional && batch.batch_size > 0) {
        return gen::fail(KVJIT_BAD_ARGUMENT, array.name, text(array.name, " is null; ", op_name(spec), " needs it"));
    }
    const std::int64_t bytes = gen::dtype_bytes(static_cast<kvjit_dtype>(spec.starts_type));
    const std::int64_t past = misalignment(pointer, bytes);
    return past == 0 ? Result<void>() : refuse_misaligned(array.name, past, bytes);
}

Result<void> check_pointers(const KernelSpec& spec, const kvjit_batch& batch) {
    for (const IndexArray& array : kIndexArrays) {
        if (Result<void> result = check_pointer(spec, batch, array); !result) return result;
    }
    return {};
}

/// Why only kvstarts will do: where a sequence's keys begin among those of all.
const char* needs_kvstarts(const KernelSpec& spec) {
    if (!gen::has_cache(spec)) return "packed keys and values have their places by it";
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) return "a token_table's rows have their places by it";
    return gen::attends(spec) && spec.attn_mask != 0 ? "the mask's columns have their places by it" : nullptr;
}

/// Exactly one of three arrays gives the counts of keys.
Result<void> check_key_arrays(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_keys(spec)) return {};
    const bool starts = batch.kvstarts != nullptr, lens = batch.kvlens != nullptr,
               last = batch.last_page_len != nullptr;
    if (starts + lens + last > 1) {
        const char* extra = last ? "last_page_len" : "kvlens";
        return gen::fail(KVJIT_BAD_ARGUMENT, extra,
                         text(extra, " is given; of kvstarts, kvlens and last_page_len a batch has one"));
    }
    if (last && (!gen::is_paged(spec) || batch.rowstarts == nullptr))
        return gen::fail(KVJIT_BAD_ARGUMENT, "last_page_len",
                         "last_page_len is given; it takes pages that rowstarts counts");
    if (starts || batch.batch_size == 0) return {};
    const char* need = needs_kvstarts(spec);
    if (need != nullptr)
        return gen::fail(KVJIT_BAD_ARGUMENT, "kvstarts",
                         text("kvstarts is null; ", op_name(spec), " needs it: ", need));
    if (lens || last) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, "kvstarts",
                     text("kvstarts is null; ", op_name(spec), " needs it, or kvlens or last_page_len in its place"));
}

Result<void> check_slopes(const kvjit_batch& batch, std::int64_t num_heads) {
    const std::int64_t past = misalignment(batch.alibi_slopes, sizeof(float));
    if (past != 0) return refuse_misaligned("alibi_slopes", past, sizeof(float));
    for (std::int64_t h = 0; h < num_heads; ++h) {
        if (std::isfinite(batch.alibi_slopes[h])) continue;
        return gen::fail(KVJIT_BAD_ARGUMENT, "alibi_slopes",
                         text("alibi_slopes[", h, "] is ", batch.alibi_slopes[h], "; it takes finite numbers"), h);
    }
    return {};
}

template <class T>
Result<void> check_number(const gen::ScoreRule& rule, const gen::ScoreNumber<T>& number, const KernelSpec& spec,
                          const kvjit_batch& batch) {
    const T value = batch.*number.given;
    if (spec.*rule.member != 0) {
        if (value >= number.least && value <= std::numeric_limits<T>::max()) return {};
        return refuse(KVJIT_BAD_ARGUMENT, number.name, value, number.least, text("it takes ", number.takes));
    }
    if (value == number.none) return {};
    return refuse(KVJIT_BAD_ARGUMENT, number.name, value, number.none,
                  text("the spec's ", rule.field.name, " is 0, so it takes ", number.none));
}

Result<void> check_score_rules(const KernelSpec& spec, const kvjit_batch& batch) {
    Result<void> result;
    if (!gen::attends(spec)) return result;
    for (const gen::ScoreRule& rule : gen::kScoreRules) {
        gen::for_each_number(rule, [&](const auto& number) {
            if (result) result = check_number(rule, number, spec, batch);
        });
    }
    return result;
}

Result<void> check_floats(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::attends(spec)) return {};
    if (!std::isfinite(batch.softmax_scale)) {
        return gen::fail(KVJIT_BAD_ARGUMENT, "softmax_scale",
                         text("softmax_scale is ", batch.softmax_scale, "; it takes a finite number"));
    }
    if (batch.alibi_slopes == nullptr) return {};
    if (spec.is_alibi != 0) return check_slopes(batch, query_heads(spec, batch));
    return gen::fail(KVJIT_BAD_ARGUMENT, "alibi_slopes", "alibi_slopes is given; the spec's is_alibi is 0");
}

using Part = Result<void> (*)(const KernelSpec&, const kvjit_batch&);
constexpr Part kOutline[] = {check_scalars,    check_heads,       check_layers, check_cache_bytes, check_pointers,
                             check_key_arrays, check_score_rules, check_floats, check_table_shape};

/// What a part of a batch's arrays holds, and the lowest level that checks it.
struct ArrayPart {
    Result<void> (*check)(const BatchArrays&);
    kvjit_check_level level;
};
constexpr ArrayPart kArrayParts[] = {
    {check_totals, KVJIT_CHECK_NONE},         {check_starts, KVJIT_CHECK_BATCH},
    {check_new_positions, KVJIT_CHECK_BATCH}, {check_table_rows, KVJIT_CHECK_BATCH},
    {check_table_entries, KVJIT_CHECK_FULL},  {check_new_slots, KVJIT_CHECK_FULL},
};

}  // namespace

Result<void> check_whole_groups(const KernelSpec& spec, std::int64_t num_heads, std::string_view name) {
    if (num_heads % spec.group == 0) return {};
    return refuse(KVJIT_BAD_ARGUMENT, std::string(name), num_heads, spec.group,
                  text("with num_kv_heads 0 it takes multiples of the spec's group, ", spec.group));
}

BatchUse batch_use(const KernelSpec& spec, const kvjit_plan_options& options, std::int64_t alignment) {
    return {static_cast<kvjit_check_level>(options.check_level), gen::has_cache(spec) && options.stores_nothing == 0,
            alignment};
}

Result<void> check_batch_scalars(const KernelSpec& spec, const kvjit_batch& batch, const BatchUse& use) {
    for (const Part check : kOutline) {
        if (Result<void> result = check(spec, batch); !result) return result;
    }
    return use.stores ? check_pointer(spec, batch, kStartPos) : Result<void>();
}

Result<void> check_batch(const KernelSpec& spec, const kvjit_batch& batch, const BatchUse& use) {
    if (Result<void> result = check_batch_scalars(spec, batch, use); !result || batch.batch_size == 0) return result;
    const BatchView view = batch_view(spec, batch, use.stores);
    const BatchArrays arrays{spec, checked_batch(view, use.alignment), view.cache.paging(), rule_words(view)};
    for (const ArrayPart& part : kArrayParts) {
        if (use.level > part.level) continue;
        if (Result<void> result = part.check(arrays); !result) return result;
    }
    return {};
}

}  // namespace kvjit::rt
