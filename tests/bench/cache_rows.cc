#include "cache_rows.h"

#include <algorithm>

#include "limits/together.h"

namespace kvjit::bench {
namespace {

using Span = CacheRows::Span;

constexpr std::int64_t kChunkKeys = 512;
constexpr std::size_t kLine = 64, kPiece = 1024, kMemoryPage = 4096;
constexpr std::size_t kPieceLines = kPiece / kLine;
/// How far ahead lines are prefetched, and how far one line of each page of memory, whose address must be looked up.
constexpr std::size_t kAheadBytes = 8192, kReachBytes = 2 * kAheadBytes;

/// Finds rows of a call's cache.
class RowFinder {
public:
    explicit RowFinder(const Call& call)
        : call_(call),
          axes_(test::layout_axes(call.spec.layout)),
          memory_(test::bytes_of(call.tensors.cache)),
          row_(test::code_row(call.spec)) {}

    /// Whether a token's heads are neighbours in memory.
    bool is_head_inner() const { return stride_of('H') < stride_of('T'); }

    Span row(std::int64_t layer, std::int64_t sequence, std::int64_t position, std::int64_t part,
             std::int64_t head) const {
        const Place place = place_of(sequence, position);
        const test::CacheElement element{place.block, place.token, layer, part, head, 0};
        const std::int64_t at = test::offset_of(element, axes_, call_.tensors.cache.strides);
        const std::size_t bytes = test::bytes_of(row_);
        return memory_.subspan(static_cast<std::size_t>(at) * (bytes / static_cast<std::size_t>(row_.elements)), bytes);
    }

private:
    std::int64_t stride_of(char axis) const {
        const auto at = std::ranges::find(axes_, axis, &test::LayoutAxis::name);
        return call_.tensors.cache.strides[at - axes_.begin()];
    }

    struct Place {
        std::int64_t block, token;
    };
    Place place_of(std::int64_t sequence, std::int64_t position) const {
        const auto entry = [&](std::int64_t at) { return call_.table[static_cast<std::size_t>(at)]; };
        if (call_.spec.cache_mode == KVJIT_TOKEN_TABLE) return {0, entry(sequence * call_.size.keys + position)};
        if (!test::has_pages(call_.spec)) return {0, entry(sequence) + position};
        const std::int64_t page = call_.spec.page_size, columns = call_.batch.cachestarts.shape[1];
        const std::int64_t first = entry(sequence * columns + position / page);
        if (call_.spec.cache_mode == KVJIT_BLOCK_TABLE) return {first, position % page};
        return {0, first + position % page};
    }

    const Call& call_;
    std::vector<test::LayoutAxis> axes_;
    std::span<const std::byte> memory_;
    test::RowType row_;
};

void add_row(std::vector<Span>& spans, Span row) {
    if (!spans.empty() && spans.back().data() + spans.back().size() == row.data())
        spans.back() = {spans.back().data(), spans.back().size() + row.size()};
    else
        spans.push_back(row);
}

struct Heads {
    std::int64_t begin, end;
};

void add_sequence(std::vector<Span>& spans, const RowFinder& finder, std::int64_t layer, std::int64_t sequence,
                  std::int64_t keys, Heads heads) {
    for (std::int64_t at = 0; at < 2 * keys; ++at) {
        const std::int64_t begin = at / (2 * kChunkKeys) * kChunkKeys, count = std::min(kChunkKeys, keys - begin);
        const std::int64_t in_chunk = at - 2 * begin;  // its keys, then its values
        for (std::int64_t head = heads.begin; head < heads.end; ++head)
            add_row(spans, finder.row(layer, sequence, begin + in_chunk % count, in_chunk / count, head));
    }
}

std::vector<Span> spans_of(const Call& call) {
    const RowFinder finder(call);
    const std::int64_t step = finder.is_head_inner() ? call.size.kv_heads : 1;
    std::vector<Span> spans;
    for (std::int64_t layer = 0; layer < call.size.layers; ++layer) {
        for (std::int64_t sequence = 0; sequence < call.size.sequences; ++sequence) {
            for (std::int64_t head = 0; head < call.size.kv_heads; head += step)
                add_sequence(spans, finder, layer, sequence, call.size.keys, {head, head + step});
        }
    }
    return spans;
}

/// Into the second-level cache, which can wait for more lines at a time than the first.
void prefetch(const std::byte& line) {
    __builtin_prefetch(&line, 0, 2);
}

/// Passes over spans in pieces of up to `piece` bytes, each of one span.
class Pieces {
public:
    Pieces(std::span<const Span> spans, std::size_t piece) : spans_(spans), piece_(piece) {}

    bool at_end() const { return spans_.empty(); }
    bool is_before(std::size_t bytes) const { return !at_end() && passed_ < bytes; }
    std::size_t passed() const { return passed_; }

    Span next() {
        const Span rest = spans_.front().subspan(at_), piece = rest.first(std::min(piece_, rest.size()));
        passed_ += piece.size();
        at_ += piece.size();
        if (piece.size() == rest.size()) {
            spans_ = spans_.subspan(1);
            at_ = 0;
        }
        return piece;
    }

private:
    std::span<const Span> spans_;  // from the one that holds the next piece on
    std::size_t piece_;
    std::size_t at_ = 0, passed_ = 0;
};

void load(const std::byte& line) {
    static_cast<void>(*static_cast<const volatile std::byte*>(&line));
}

void prefetch_lines(Span bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += kLine) prefetch(bytes[i]);
}

/// Loads a piece: lines a quarter of it apart in turns, each by an instruction of its own. One instruction for all
/// lines, or lines in order, read a tenth to a quarter slower on a Zen 5.
void load_lines(Span bytes) {
    if (bytes.size() == kPiece) {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kPieceLines; ++i) load(bytes[(i % 4 * (kPieceLines / 4) + i / 4) * kLine]);
    } else {
        for (std::size_t i = 0; i < bytes.size(); i += kLine) load(bytes[i]);
    }
}

/// Loads a piece and prefetches `coming`, line by line: a burst of prefetches would delay loads.
void load_lines(Span bytes, Span coming) {
    for (std::size_t i = 0; i < std::max(bytes.size(), coming.size()); i += kLine) {
        if (i < coming.size()) prefetch(coming[i]);
        if (i < bytes.size()) load(bytes[i]);
    }
}

template <RowsWay way>
void load_spans(std::span<const Span> spans) {
    Pieces pages(spans, kMemoryPage), ahead(spans, kPiece), loaded(spans, kPiece);
    while (!loaded.at_end()) {
        while (pages.is_before(loaded.passed() + kReachBytes)) prefetch(pages.next().front());
        if constexpr (way == RowsWay::kPlain) {
            load_lines(loaded.next());
        } else {
            while (ahead.is_before(loaded.passed() + kAheadBytes)) prefetch_lines(ahead.next());
            const Span piece = loaded.next();
            load_lines(piece, ahead.is_before(loaded.passed() + kAheadBytes) ? ahead.next() : Span());
        }
    }
}

std::size_t bytes_of(std::span<const Span> spans) {
    std::size_t bytes = 0;
    for (const Span& span : spans) bytes += span.size();
    return bytes;
}

/// Where each of `parts` parts of about as many bytes begins, and the end.
std::vector<std::size_t> divide(std::span<const Span> spans, std::size_t parts) {
    const std::size_t total = bytes_of(spans);
    std::vector<std::size_t> firsts;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < spans.size(); bytes += spans[i++].size()) {
        if (bytes >= total * firsts.size() / parts) firsts.push_back(i);
    }
    firsts.resize(parts + 1, spans.size());
    return firsts;
}

}  // namespace

CacheRows::CacheRows(const Call& call)
    : spans_(spans_of(call)), firsts_(divide(spans_, static_cast<std::size_t>(thread_count()))) {}

double CacheRows::measure(RowsWay way) const {
    const std::span<const Span> spans = spans_;
    const double seconds = limits::run_together(thread_count(), [&](int i) {
        const std::size_t first = firsts_[static_cast<std::size_t>(i)];
        const std::span<const Span> part = spans.subspan(first, firsts_[static_cast<std::size_t>(i) + 1] - first);
        way == RowsWay::kPlain ? load_spans<RowsWay::kPlain>(part) : load_spans<RowsWay::kPrefetched>(part);
    });
    return static_cast<double>(bench::bytes_of(spans)) / seconds;
}

}  // namespace kvjit::bench
