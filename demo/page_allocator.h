#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

namespace demo {

/// Hands out the pages of one cache: token indices of their first token, as kvjit's page tables hold them. Every layer
/// of the cache has the same pages, so one table serves all of them.
class PageAllocator {
public:
    PageAllocator(std::int64_t pages, std::int64_t page_size) {
        for (std::int64_t page = pages; page-- > 0;) free_.push_back(page * page_size);
    }

    std::int64_t free_pages() const { return static_cast<std::int64_t>(free_.size()); }

    /// Precondition: free_pages() > 0.
    std::int64_t take() {
        assert(!free_.empty());
        const std::int64_t page = free_.back();
        free_.pop_back();
        return page;
    }

    void give_back(const std::vector<std::int64_t>& pages) { free_.insert(free_.end(), pages.begin(), pages.end()); }

private:
    std::vector<std::int64_t> free_;  // last freed, first taken: its lines may still be in a cache of the processor
};

}  // namespace demo
