#include "cuda/device_check.h"

#include <string>

#include "check/arithmetic.h"
#include "check/fault.h"

namespace kvjit::rt {
namespace {

/// What `value` and `limit` of a fault are, by its rule.
struct RuleText {
    abi::Rule rule;
    kvjit_status status;
    const char* argument;
    const char* counts;     // what of the sequence `value` counts; null: it is the entry itself
    const char* rule_text;  // goes before the limit; null: the limit is another sequence
    std::string_view unless = "";
};

constexpr const char* kStartsRule = "starts begin at 0, may not fall and end by 2^62, the limit is";

constexpr RuleText kTexts[] = {
    {abi::Rule::kSeqstarts, KVJIT_BAD_INDEX, "seqstarts", nullptr, kStartsRule},
    {abi::Rule::kKvstarts, KVJIT_BAD_INDEX, "kvstarts", nullptr, kStartsRule},
    {abi::Rule::kStartPos, KVJIT_BAD_INDEX, "start_pos", nullptr, "keys less new tokens make it", kIfStored},
    {abi::Rule::kMaxSeqlen, KVJIT_BAD_ARGUMENT, "seqstarts", "new tokens", "max_seqlen is"},
    {abi::Rule::kMaxKvlen, KVJIT_BAD_ARGUMENT, "kvstarts", "keys", "max_kvlen is"},
    {abi::Rule::kQueryRows, KVJIT_BAD_SHAPE, "seqstarts", nullptr, "tensors of the query side have rows:"},
    {abi::Rule::kKeyRows, KVJIT_BAD_SHAPE, "kvstarts", nullptr, "key, value, table or mask have rows:"},
    {abi::Rule::kTableRow, KVJIT_BAD_INDEX, "row_index or rowstarts", nullptr,
     "it has to lie in cachestarts, the limit is"},
    {abi::Rule::kTableWidth, KVJIT_BAD_INDEX, "kvstarts", "entries of cachestarts to read", "its row has room for"},
    {abi::Rule::kEntry, KVJIT_BAD_INDEX, "cachestarts", nullptr, "its tokens have to lie in the cache, the limit is"},
    {abi::Rule::kSharedSlot, KVJIT_BAD_INDEX, "cachestarts", nullptr, nullptr, kIfStored},
    {abi::Rule::kNewKeys, KVJIT_BAD_INDEX, "kvstarts", "keys", "new tokens are keys, too, so it takes at least",
     kIfStored},
};
constexpr RuleText kTooManyKeys = {abi::Rule::kKvstarts, KVJIT_BAD_INDEX, "kvstarts", "keys", "a sequence has at most"};

const RuleText& text_of(const abi::Fault& fault) {
    const bool counts_keys = fault.limit == abi::kMaxKeys && fault.value > fault.limit;
    if (fault.rule == abi::Rule::kKvstarts && counts_keys) return kTooManyKeys;
    return kTexts[static_cast<std::size_t>(fault.rule) - 1];
}

/// A fault's index counts from the first entry of the sequence's row where it is one of cachestarts.
std::string what_is(const RuleText& found, const abi::Fault& fault) {
    if (found.counts != nullptr) {
        return text("by ", found.argument, " sequence ", fault.sequence, " has ", fault.value, " ", found.counts);
    }
    if (fault.rule == abi::Rule::kEntry) {
        return text("cachestarts, entry ", fault.index, " of the sequence's row, is ", fault.value);
    }
    return text(found.argument, "[", fault.index, "] is ", fault.value);
}

std::string fault_text(const RuleText& found, const abi::Fault& fault) {
    if (found.rule_text != nullptr)
        return text(what_is(found, fault), "; ", found.rule_text, " ", fault.limit, found.unless);
    return text("cachestarts gives new tokens of sequences ", fault.limit, " and ", fault.sequence, " slot ",
                fault.value, "; each takes one of its own", found.unless);
}

/// Rows that all of these have; those that are absent don't count.
std::int64_t least_rows(std::initializer_list<const kvjit_tensor*> tensors) {
    std::int64_t rows = kMaxInt64;
    for (const kvjit_tensor* tensor : tensors) {
        if (tensor->rank != 0) rows = std::min(rows, tensor->shape[0]);
    }
    return rows;
}

std::int64_t key_rows_of(const BoundBatch& bound, const kvjit_tensors& tensors) {
    std::int64_t rows = least_rows({&tensors.key, &tensors.value});
    const kvjit_tensor& mask = tensors.attn_mask;
    if (mask.rank != 0) rows = std::min(rows, mask.shape[mask.rank - 1]);
    const bool by_token = gen::has_cache(bound.spec) && bound.spec.cache_mode == KVJIT_TOKEN_TABLE;
    return by_token ? std::min(rows, bound.batch.cachestarts.shape[0]) : rows;
}

std::int64_t query_rows_of(const kvjit_tensors& tensors) {
    const kvjit_tensor& mask = tensors.attn_mask;
    const std::int64_t rows = least_rows({&tensors.query, &tensors.current_key, &tensors.attn_output, &tensors.lse});
    return mask.rank != 0 ? std::min(rows, mask.shape[mask.rank - 2]) : rows;
}

/// Rows of the table and entries of a row; where rows begin anywhere, one row with all entries.
void bind_table_extent(const BoundBatch& bound, abi::CudaCheckArgs& args) {
    const kvjit_tensor& table = bound.batch.cachestarts;
    const bool padded = gen::is_paged(bound.spec) && bound.batch.rowstarts == nullptr;
    args.table_rows = table.shape[0];
    args.table_entries = bound.spec.cache_mode == KVJIT_OFFSET ? 1 : table.shape[padded ? 1 : 0];
}

}  // namespace

abi::CudaCheckArgs bind_check(const BoundBatch& bound, const Bounds& bounds, const kvjit_tensors& tensors,
                              kvjit_check_level level) {
    abi::CudaCheckArgs args{};
    args.batch_size = bound.batch.batch_size;
    args.seqstarts = bound.batch.seqstarts;
    args.kvstarts = bound.batch.kvstarts;
    args.start_pos = bound.stores ? bound.batch.start_pos : nullptr;
    args.max_seqlen = bounds.max_seqlen;
    args.max_kvlen = bounds.max_kvlen;
    args.query_rows = query_rows_of(tensors);
    args.key_rows = key_rows_of(bound, tensors);
    if (!gen::has_cache(bound.spec)) return args;
    const bool blocks = bound.spec.cache_mode == KVJIT_BLOCK_TABLE;
    args.num_slots = blocks ? bound.batch.num_blocks : bound.batch.max_tokens;
    args.table = bind_table(bound);
    bind_table_extent(bound, args);
    args.entries = level == KVJIT_CHECK_FULL;
    args.slots = args.entries && tensors.current_key.rank != 0;
    return args;
}

gen::Error fault_error(const abi::Fault& fault) {
    const RuleText& found = text_of(fault);
    const bool of_entries = fault.rule == abi::Rule::kEntry || fault.rule == abi::Rule::kSharedSlot;
    std::string message =
        text(fault_text(found, fault), " (sequence ", fault.sequence,
             "; found on the device, nothing was written since)", of_entries ? kAtCheckFull : kAtCheckBatch);
    return {found.status, std::move(message), found.argument, fault.value, fault.limit, fault.sequence};
}

}  // namespace kvjit::rt
