// The rows that a decode step reads, by their addresses, and a loop that only loads them: a yardstick for kernels with
// its layout, pages and slots. It is no bound, since another distance or order of prefetches may suit a processor
// better.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "setup.h"

namespace kvjit::bench {

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
    double measure() const;

private:
    std::vector<Span> spans_;
    std::vector<std::size_t> firsts_;  // of each thread's spans, and the end
};

}  // namespace kvjit::bench
