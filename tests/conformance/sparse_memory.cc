#include "conformance/sparse_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "conformance/options.h"
#include "gpu_access.h"

namespace kvjit::test {
namespace {

constexpr std::size_t kPart = std::size_t{1} << 30;  // what mincore is asked for at once

bool is_resident(unsigned char page) {
    return (page & 1) != 0;
}

/// Calls show(begin, bytes) for each run of pages of a part that are in memory.
template <class Show>
void for_each_resident(std::byte* part, std::size_t bytes, std::vector<unsigned char>& pages, Show show) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    pages.resize((bytes + page - 1) / page);
    if (mincore(part, bytes, pages.data()) != 0) throw std::bad_alloc();
    for (auto begin = pages.begin(), end = begin; begin != pages.end(); begin = end) {
        begin = std::find_if(begin, pages.end(), is_resident);
        end = std::find_if_not(begin, pages.end(), is_resident);
        if (begin != end)
            show(part + static_cast<std::size_t>(begin - pages.begin()) * page,
                 static_cast<std::size_t>(end - begin) * page);
    }
}

}  // namespace

SparseMemory::SparseMemory(std::size_t bytes) : bytes_(bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(mapped);
    madvise(data_, bytes, MADV_NOHUGEPAGE);  // else what is written once takes, and shows, 2 MB
}

SparseMemory::~SparseMemory() {
    for (void* pages : shown_) tool::hide_from_gpu(pages);
    if (exists()) munmap(data_, bytes_);
}

void SparseMemory::show_written() {
    if (!options().on_gpu()) return;
    std::vector<unsigned char> pages;
    for (std::size_t at = 0; at < bytes_; at += kPart) {
        for_each_resident(data_ + at, std::min(kPart, bytes_ - at), pages, [&](std::byte* begin, std::size_t bytes) {
            tool::show_to_gpu(begin, bytes);
            shown_.push_back(begin);
        });
    }
}

}  // namespace kvjit::test
