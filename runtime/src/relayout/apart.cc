#include "relayout/apart.h"

#include <algorithm>
#include <cstdint>

#include "check/fault.h"
#include "check/view.h"
#include "generator/operator.h"

namespace kvjit::rt {
namespace {

using gen::Result;

/// Addresses begin..end-1.
struct Span {
    std::uintptr_t begin, end;

    bool meets(const Span& other) const { return begin < other.end && other.begin < end; }
};

/// The addresses of a tensor's elements. The stride of axis 2 may be negative.
Span span_of(const kvjit_tensor& tensor) {
    if (!is_present(tensor) || is_empty(tensor)) return {0, 0};
    const auto at = reinterpret_cast<std::uintptr_t>(tensor.data);
    std::int64_t below = 0, above = 1;
    for (std::int32_t axis = 0; axis < tensor.rank; ++axis) {
        const std::int64_t way = (tensor.shape[axis] - 1) * tensor.strides[axis];
        (way < 0 ? below : above) += way;
    }
    const auto bytes = [&](std::int64_t elements) {
        return static_cast<std::uintptr_t>(elements * element_bytes(tensor));
    };
    return {at + bytes(below), at + bytes(above)};
}

bool are_the_same(const kvjit_tensor& a, const kvjit_tensor& b) {
    return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank &&
           std::equal(a.shape, a.shape + a.rank, b.shape) && std::equal(a.strides, a.strides + a.rank, b.strides);
}

/// Whether equal addresses, or equal tensors, mean the same on both sides.
bool mean_the_same(const RelayoutView& view) {
    const gen::KernelSpec &from = view.from.batch.spec, &to = view.to.batch.spec;
    const CacheView &a = view.from.batch.cache, &b = view.to.batch.cache;
    return gen::layout_axes(from) == gen::layout_axes(to) && gen::value_axes(from) == gen::value_axes(to) &&
           gen::cache_type(from) == gen::cache_type(to) && from.quant_bit == to.quant_bit &&
           (from.quant_bit == 0 ||
            (from.quant_group == to.quant_group && gen::scale_type(from) == gen::scale_type(to))) &&
           a.block_tokens() == b.block_tokens() && a.num_layers() == b.num_layers() &&
           view.from.batch.num_kv_heads == view.to.batch.num_kv_heads;
}

bool are_apart(std::int64_t a, std::int64_t b, std::int64_t count) {
    return a + count <= b || b + count <= a;
}

std::string place_text(const SharedSlot& shared, Entries entries) {
    if (entries == Entries::kTokens) return text("slot ", shared.token);
    return text("token ", shared.token, " of block ",
                entries == Entries::kAddresses ? address_text(shared.block) : text(shared.block));
}

std::unexpected<gen::Error> refuse_shared(const SharedSlot& shared, Entries entries) {
    return gen::fail(KVJIT_BAD_ARGUMENT, "to",
                     text("to writes ", place_text(shared, entries), ", of its sequence ", shared.to_sequence,
                          ", which from reads for its sequence ", shared.from_sequence,
                          "; a relayout within one cache takes other slots, heads or layers"),
                     shared.token, 0, shared.to_sequence);
}

std::unexpected<gen::Error> refuse_overlap(std::string_view name, std::string_view other) {
    return gen::fail(KVJIT_BAD_ARGUMENT, text("to.", name),
                     text("to.", name, " lies in the memory of from.", other,
                          "; two caches lie apart, or are the same tensors by the same layout"));
}

/// The first pair of tensors that share memory.
struct Met {
    const gen::OperatorTensor *to, *from;
};
std::optional<Met> first_met(const kvjit_tensors& from, const kvjit_tensors& to) {
    for (const gen::OperatorTensor& written : gen::cache_tensors()) {
        for (const gen::OperatorTensor& read : gen::cache_tensors()) {
            if (span_of(to.*written.member).meets(span_of(from.*read.member))) return Met{&written, &read};
        }
    }
    return std::nullopt;
}

bool are_the_same(const kvjit_tensors& from, const kvjit_tensors& to) {
    return std::ranges::all_of(gen::cache_tensors(), [&](const gen::OperatorTensor& tensor) {
        return are_the_same(from.*tensor.member, to.*tensor.member);
    });
}

/// The bytes that a side reads or writes at an address.
struct Block {
    std::int64_t address, bytes;

    Span span() const {
        const auto begin = static_cast<std::uintptr_t>(address);
        return {begin, begin + static_cast<std::uintptr_t>(bytes)};
    }
};

std::unexpected<gen::Error> refuse_block_read(const Block& block, std::string_view tensor) {
    return gen::fail(KVJIT_BAD_ARGUMENT, text("to.", tensor),
                     text("to.", tensor, " lies in the memory of the block at ", address_text(block.address),
                          ", which from reads; two caches lie apart"),
                     block.address);
}

std::unexpected<gen::Error> refuse_block_written(const Block& block, std::string_view tensor) {
    return gen::fail(KVJIT_BAD_ARGUMENT, "to.cachestarts",
                     text("to.cachestarts has the block at ", address_text(block.address),
                          ", which lies in the memory of from.", tensor, "; two caches lie apart"),
                     block.address);
}

/// Checks the blocks of one side against the tensors of the other.
Result<void> check_side_blocks(const RelayoutView& view, const RelayoutSideView& side, const RunEntries& entries,
                               const kvjit_tensors& others) {
    const auto check = [&](const Block& block) -> Result<void> {
        for (const gen::OperatorTensor& tensor : gen::cache_tensors()) {
            if (!block.span().meets(span_of(others.*tensor.member))) continue;
            return &side == &view.from ? refuse_block_read(block, tensor.name)
                                       : refuse_block_written(block, tensor.name);
        }
        return {};
    };
    for (const std::int64_t entry : entries.codes) {
        if (auto apart = check({entry, side.batch.cache.code_blocks().bytes}); !apart) return apart;
    }
    for (const std::int64_t entry : entries.scales) {
        if (auto apart = check({entry, side.batch.cache.scale_blocks().bytes}); !apart) return apart;
    }
    return {};
}

}  // namespace

Result<void> Apart::check_blocks() const {
    const std::optional<SharedSlot> overlapping = overlapping_block(view_, mean_the_same(view_));
    if (!overlapping) return {};
    return gen::fail(
        KVJIT_BAD_INDEX, "to.cachestarts",
        text("to.cachestarts has the block at ", address_text(overlapping->block), " for sequence ",
             overlapping->to_sequence, "; it overlaps one that from reads for sequence ", overlapping->from_sequence),
        overlapping->block, 0, overlapping->to_sequence);
}

Result<void> Apart::check_layers() const {
    if (view_.num_layers == 1) return {};
    const std::optional<SharedSlot> shared = slot_of_two_layers(view_);
    if (!shared) return {};
    return gen::fail(
        KVJIT_BAD_INDEX, "to.cachestarts",
        text("to.cachestarts sends tokens of two layers, of sequences ", shared->from_sequence, " and ",
             shared->to_sequence, ", to ", place_text(*shared, view_.to.batch.cache.paging().entries), "; layout ",
             gen::layout_axes(view_.to.batch.spec), " has no axis L, so each takes a slot of its own"),
        shared->token, 0, shared->to_sequence);
}

Result<void> Apart::check_tables() const {
    if (auto blocks = check_blocks(); !blocks) return blocks;
    return check_layers();
}

Result<void> Apart::check_one_cache(std::int64_t from_layer, std::int64_t to_layer) const {
    if (are_apart(view_.from.head, view_.to.head, view_.num_kv_heads)) return {};
    const bool has_layers = gen::layout_axes(view_.from.batch.spec).contains('L');
    const std::int64_t begin = has_layers ? std::max(from_layer, to_layer) : 0;
    const std::int64_t end = has_layers ? std::min(from_layer, to_layer) + view_.num_layers : 1;
    for (std::int64_t layer = begin; layer < end; ++layer) {
        const auto& shared = shared_[shared_.size() == 1 ? 0 : static_cast<std::size_t>(layer)];
        if (shared) return refuse_shared(*shared, view_.from.batch.cache.paging().entries);
    }
    return {};
}

Result<void> Apart::check_run(const RelayoutRuns& runs, const kvjit_tensors& from, std::int64_t from_layer,
                              const kvjit_tensors& to, std::int64_t to_layer) const {
    const bool from_blocks = view_.from.batch.cache.paging().entries == Entries::kAddresses;
    const bool to_blocks = view_.to.batch.cache.paging().entries == Entries::kAddresses;
    if (from_blocks && to_blocks) return check_one_cache(from_layer, to_layer);
    if (from_blocks) return check_side_blocks(view_, view_.from, runs.from, to);
    if (to_blocks) return check_side_blocks(view_, view_.to, runs.to, from);
    const std::optional<Met> met = first_met(from, to);
    if (!met) return {};
    if (mean_the_same(view_) && are_the_same(from, to)) return check_one_cache(from_layer, to_layer);
    return refuse_overlap(met->to->name, met->from->name);
}

}  // namespace kvjit::rt
