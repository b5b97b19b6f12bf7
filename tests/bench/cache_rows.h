// The rows that a decode step reads, by their addresses, and loops that only load them: yardsticks for kernels with
// its layout, pages and slots. They are no bounds, since another distance or order may suit a processor better.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "setup.h"

namespace kvjit::bench {

/// How rows are loaded: as the processor fetches them, or with each line prefetched. Either way a line of each page of
/// memory is prefetched early.
enum class RowsWay { kPlain, kPrefetched };

/// Keys and values of all layers of a call, without scales, in the order in which decode reads them: a chunk's keys,
/// then its values; a kv head after the other, or a token after the other where a token's heads are neighbours in
/// memory.
class CacheRows {
public:
    /// Rows that are neighbours in memory and are read in turn.
    using Span = std::span<const std::byte>;

    /// The call must outlive it.
    explicit CacheRows(const Call& call);

    /// Loads all rows once, on thread_count() threads. Bytes a second.
    double measure(RowsWay way) const;

private:
    std::vector<Span> spans_;
    std::vector<std::size_t> firsts_;  // of each thread's spans, and the end
};

}  // namespace kvjit::bench
