#include "blocks/ids.h"

#include <algorithm>
#include <utility>

#include "check/arithmetic.h"
#include "check/fault.h"

namespace kvjit::rt {
namespace {

using gen::Result;

/// An entry of the caller's array.
struct Entry {
    std::string_view array;
    std::int64_t index;

    std::string name() const { return text(array, "[", index, "]"); }
};

// ---- One id -------------------------------------------------------------------------------------------------------

/// Bytes of a block of codes, or of scales, at an address.
std::int64_t bytes_at_address(const BlockCache& cache, bool scales) {
    const BlockPlane& plane = *std::ranges::find(cache.planes, scales, &BlockPlane::scales);
    std::int64_t bytes = 1;
    for (const BlockAxis& axis : plane.axes) bytes *= axis.extent;
    return bytes;
}

std::int64_t element_bytes_of(const BlockCache& cache, bool scales) {
    return gen::dtype_bytes(scales ? gen::scale_type(cache.spec) : gen::cache_type(cache.spec));
}

Result<void> check_address(const BlockCache& cache, std::int64_t address, bool scales, const Entry& entry) {
    const std::int64_t most = kMaxInt64 - bytes_at_address(cache, scales);
    if (address <= 0 || address > most) {
        const std::int64_t limit = address <= 0 ? 1 : most;
        return refuse(KVJIT_BAD_INDEX, entry.name(), address, limit, text("it takes addresses from 1 to ", most));
    }
    const std::int64_t bytes = element_bytes_of(cache, scales);
    if (address % bytes == 0) return {};
    return refuse(KVJIT_BAD_INDEX, entry.name(), address, bytes,
                  text("it takes addresses that are multiples of an element's bytes, ", bytes));
}

Result<void> check_token(const BlockCache& cache, std::int64_t id, const Entry& entry) {
    if (id >= 0 && cache.tokens <= cache.ids && id <= cache.ids - cache.tokens) return {};
    return refuse(KVJIT_BAD_INDEX, entry.name(), id, cache.ids,
                  text("its tokens are ", cache.tokens,
                       " from there on; the cache has tokens 0 to max_tokens - 1, "
                       "max_tokens is ",
                       cache.ids));
}

Result<void> check_block(const BlockCache& cache, std::int64_t id, const Entry& entry) {
    if (id >= 0 && id < cache.ids) return {};
    return refuse(KVJIT_BAD_INDEX, entry.name(), id, cache.ids,
                  text("the cache has blocks 0 to num_blocks - 1, num_blocks is ", cache.ids));
}

Result<void> check_id(const BlockCache& cache, std::int64_t id, bool scales, const Entry& entry) {
    switch (cache.entries) {
        case abi::Entries::kAddresses:
            return check_address(cache, id, scales, entry);
        case abi::Entries::kBlocks:
            return check_block(cache, id, entry);
        default:
            return check_token(cache, id, entry);
    }
}

// ---- All of them --------------------------------------------------------------------------------------------------

/// The range that an id stands for: of blocks, of tokens, or of bytes of memory.
struct Span {
    std::int64_t begin, end;
    Entry entry;
    bool written;

    std::pair<std::int64_t, std::int64_t> range() const { return {begin, end}; }
};

void add_spans(const BlockIds& ids, bool scales, std::vector<Span>& spans) {
    const std::span<const std::int64_t> array = scales ? ids.scales : ids.codes;
    if (array.empty()) return;
    const BlockCache& cache = *ids.cache;
    const std::int64_t size = cache.has_addresses()                    ? bytes_at_address(cache, scales)
                              : cache.entries == abi::Entries::kTokens ? cache.tokens
                                                                       : 1;
    std::int64_t index = scales ? std::ssize(ids.codes) : 0;
    for (const std::int64_t id : array) {
        spans.push_back({id, id + size, {ids.name, index++}, ids.use == BlockUse::kWritten});
    }
}

/// At least one of `a` and `b` is written: the error names that one.
std::unexpected<gen::Error> overlap(const Span& a, const Span& b) {
    const bool names_a = a.written && !b.written;
    const Span& named = names_a ? a : b;
    const Span& other = names_a ? b : a;
    const std::string_view how = named.range() == other.range() ? " is the same block" : " overlaps it";
    return refuse(KVJIT_BAD_INDEX, named.entry.name(), named.begin, 0,
                  text(other.entry.name(), ", ", other.begin, ",", how, "; what is written is apart from all else"));
}

/// Visits spans in the order of their begins.
class Sweep {
public:
    explicit Sweep(bool in_order) : in_order_(in_order) {}

    /// Takes all spans of one range.
    Result<void> take(std::span<const Span> same) {
        const auto written = std::ranges::find(same, true, &Span::written);
        const bool has_written = written != same.end();
        const Span& named = has_written ? *written : same.front();
        const Span* before = has_written ? all_ : written_;
        if (before != nullptr && before->end > named.begin) return overlap(*before, named);
        if (has_written) {
            if (auto alone = check_alone(same, *written); !alone) return alone;
            reach(written_, *written);
        }
        reach(all_, named);
        return {};
    }

private:
    Result<void> check_alone(std::span<const Span> same, const Span& written) const {
        for (const Span& other : same) {
            if (&other == &written || (in_order_ && !other.written)) continue;
            return overlap(written, other);
        }
        return {};
    }
    static void reach(const Span*& furthest, const Span& span) {
        if (furthest == nullptr || span.end > furthest->end) furthest = &span;
    }

    bool in_order_;
    const Span* all_ = nullptr;  // the one that ends last
    const Span* written_ = nullptr;
};

}  // namespace

Result<BlockIds> read_ids(const BlockCache& cache, BlockUse use, const std::int64_t* ids, std::int64_t count,
                          std::string_view name) {
    if (count == 0) return BlockIds{name, &cache, use, {}, {}};
    if (ids == nullptr) return gen::fail(KVJIT_BAD_ARGUMENT, std::string(name), text(name, " is null"));
    const std::int64_t past = misalignment(ids, sizeof *ids);
    if (past != 0) return refuse_misaligned(std::string(name), past, sizeof *ids);
    const auto size = static_cast<std::size_t>(count);
    const std::span scales = cache.has_scale_ids() ? std::span(ids + size, size) : std::span<const std::int64_t>();
    const BlockIds read{name, &cache, use, {ids, size}, scales};
    std::int64_t index = 0;
    for (const auto& [array, is_scale] : {std::pair(read.codes, false), std::pair(read.scales, true)}) {
        for (const std::int64_t id : array) {
            if (auto right = check_id(cache, id, is_scale, {name, index++}); !right) {
                return std::unexpected(right.error());
            }
        }
    }
    return read;
}

Result<void> check_apart(std::span<const BlockIds> arrays, bool in_order) {
    std::vector<Span> spans;
    for (const BlockIds& ids : arrays) {
        add_spans(ids, false, spans);
        add_spans(ids, true, spans);
    }
    std::ranges::stable_sort(spans, {}, &Span::range);
    Sweep sweep(in_order);
    for (std::size_t i = 0; i < spans.size();) {
        std::size_t end = i + 1;
        while (end < spans.size() && spans[end].range() == spans[i].range()) ++end;
        if (auto apart = sweep.take(std::span(spans).subspan(i, end - i)); !apart) return apart;
        i = end;
    }
    return {};
}

}  // namespace kvjit::rt
