#include "relayout/sides.h"

#include <algorithm>
#include <string>
#include <utility>

#include "check/fault.h"
#include "check/view.h"

namespace kvjit::rt {
namespace {

using gen::Result;

/// Counts are limited to this, as a batch's are.
constexpr std::int64_t kMaxRanks = 0x7fffffff;

Result<void> check_ranks(std::string_view side, std::int64_t ranks, std::int64_t rank) {
    const std::string name(side);
    if (auto many = check_range(name + "_ranks", ranks, 1, kMaxRanks); !many) return many;
    return check_range(name + "_rank", rank, 0, ranks - 1);
}

/// Tokens to copy must exist, at the positions that start_pos gives. For tokens to store check_batch has checked that.
Result<void> check_enough(const BatchView& view, const abi::Indices& start_pos) {
    for (std::int64_t b = 0; b < view.batch_size; ++b) {
        const std::int64_t tokens = length(view.seqstarts, b), keys = key_count(view.keys, b);
        if (tokens <= keys && is_given(start_pos) && index_at(start_pos, b) != keys - tokens) {
            const std::int64_t start = index_at(start_pos, b);
            return gen::fail(KVJIT_BAD_INDEX, "start_pos",
                             text("start_pos[", b, "] is ", start, "; with ", keys, " keys, ", tokens,
                                  " of them new, it takes ", keys - tokens, " (sequence ", b, ")"),
                             start, keys - tokens, b);
        }
        if (tokens <= keys) continue;
        return gen::fail(KVJIT_BAD_INDEX, "seqstarts",
                         text("seqstarts gives sequence ", b, " ", tokens, " tokens; it has ", keys,
                              " keys, so at most ", keys, " can be copied"),
                         tokens, keys, b);
    }
    return {};
}

/// Checks a relayout's batch for fields that it needs, or must not have, beyond those of all batches.
Result<void> check_outline(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    // An attention's batch may give query heads alone; here nothing says how many of them share a kv head.
    if (batch.num_kv_heads == 0)
        return refuse(KVJIT_BAD_ARGUMENT, "num_kv_heads", 0, 1,
                      "a relayout knows no groups of heads, it takes at least 1");
    const std::int64_t bytes = gen::dtype_bytes(static_cast<kvjit_dtype>(spec.starts_type));
    const std::int64_t past = misalignment(batch.start_pos, bytes);
    if (past != 0) return refuse_misaligned("start_pos", past, bytes);
    if (is_present(batch.store_slots))
        return gen::fail(KVJIT_BAD_ARGUMENT, "store_slots",
                         "store_slots is given; a relayout takes the slots of its tables, a token_table's for any");
    return {};
}

Result<BatchView> check_side(const gen::KernelSpec& spec, const kvjit_batch& batch, const BatchUse& use) {
    if (auto outline = check_outline(spec, batch); !outline) return std::unexpected(outline.error());
    if (auto checked = check_batch(spec, batch, use); !checked) return std::unexpected(checked.error());
    const BatchView view = batch_view(spec, batch, use.stores);
    if (auto enough = check_enough(view, indices(spec, batch.start_pos)); !enough)
        return std::unexpected(enough.error());
    return view;
}

/// Checks that the side has heads first..first+count-1.
Result<void> check_heads(std::string_view side, std::int64_t first, std::int64_t count, const BatchView& view) {
    const std::int64_t heads = view.num_kv_heads;
    if (auto below = check_range(std::string(side) + "_head", first, 0, heads - 1); !below) return below;
    if (first + count <= heads) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "num_kv_heads", count, heads - first,
                  text(side, " has ", heads, " kv heads and takes them from ", first, " on, so it takes at most ",
                       heads - first));
}

/// The number of heads or layers to copy: the requested one, or all, which both sides must then have alike.
Result<std::int64_t> chosen(const char* name, std::int64_t asked, std::int64_t from, std::int64_t to) {
    if (asked != 0) {
        if (auto right = check_range(name, asked, 1, std::min(from, to)); !right) return std::unexpected(right.error());
        return asked;
    }
    if (from == to) return from;
    return gen::fail(KVJIT_BAD_ARGUMENT, name,
                     text(name, " is 0; from has ", from, " and to has ", to, ", so it takes a number"), from, to);
}

Result<void> check_counts(const RelayoutView& view) {
    for (std::int64_t b = 0; b < view.from.batch.batch_size; ++b) {
        const std::int64_t from = view.from.tokens(b).count, to = view.to.tokens(b).count;
        if (from == to) continue;
        return gen::fail(
            KVJIT_BAD_INDEX, "to.seqstarts",
            text("to.seqstarts has room for ", to, " tokens of sequence ", b, "; from has ", from, " of them to copy"),
            to, from, b);
    }
    return {};
}

Result<void> check_together(const RelayoutView& view, const kvjit_relayout& relayout) {
    const std::int64_t from = view.from.batch.batch_size, to = view.to.batch.batch_size;
    if (from != to)
        return refuse(KVJIT_BAD_ARGUMENT, "to.batch_size", to, from,
                      text("from.batch_size is ", from, ", sequence b goes to sequence b"));
    if (auto heads = check_heads("from", relayout.from_head, view.num_kv_heads, view.from.batch); !heads) return heads;
    if (auto heads = check_heads("to", relayout.to_head, view.num_kv_heads, view.to.batch); !heads) return heads;
    return check_counts(view);
}

}  // namespace

gen::Error error_of_side(std::string_view side, gen::Error error) {
    if (const std::size_t at = error.message.find(kIfStored); at != std::string::npos)
        error.message.erase(at, kIfStored.size());  // an option that no relayout takes
    if (error.message.starts_with(error.argument)) error.message.insert(0, side);
    error.argument.insert(0, side);
    return error;
}

RelayoutSideView::Tokens RelayoutSideView::tokens(std::int64_t b) const {
    const std::int64_t end = key_count(batch.keys, b), begin = end - length(batch.seqstarts, b);
    const std::int64_t ahead = (rank - begin % ranks + ranks) % ranks;  // positions to the first one that takes part
    const std::int64_t rest = end - begin - ahead;
    return {begin + ahead, rest <= 0 ? 0 : (rest - 1) / ranks + 1};
}

Result<RelayoutView> check_relayout(const gen::KernelSpec& spec, const RelayoutRequest& request,
                                    kvjit_check_level level, std::int64_t alignment) {
    const kvjit_relayout& relayout = request.relayout;
    if (auto ranks = check_ranks("from", relayout.from_ranks, relayout.from_rank); !ranks)
        return std::unexpected(ranks.error());
    if (auto ranks = check_ranks("to", relayout.to_ranks, relayout.to_rank); !ranks)
        return std::unexpected(ranks.error());
    const auto from = check_side(gen::source_of(spec), request.from, {level, false, alignment});
    if (!from) return std::unexpected(error_of_side(kFromSide, from.error()));
    const auto to = check_side(gen::destination_of(spec), request.to, {level, true, alignment});
    if (!to) return std::unexpected(error_of_side(kToSide, to.error()));
    const auto heads = chosen("num_kv_heads", relayout.num_kv_heads, from->num_kv_heads, to->num_kv_heads);
    if (!heads) return std::unexpected(heads.error());
    const auto layers = chosen("num_layers", relayout.num_layers, from->cache.num_layers(), to->cache.num_layers());
    if (!layers) return std::unexpected(layers.error());
    const RelayoutView view{{*from, relayout.from_ranks, relayout.from_rank, relayout.from_head},
                            {*to, relayout.to_ranks, relayout.to_rank, relayout.to_head},
                            *heads,
                            *layers};
    if (auto together = check_together(view, relayout); !together) return std::unexpected(together.error());
    return view;
}

}  // namespace kvjit::rt
