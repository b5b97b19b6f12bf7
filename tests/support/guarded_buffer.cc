#include "support/guarded_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace kvjit::test {
namespace {

constexpr std::byte kSlack{0xa5};
PageHook made_hook = nullptr;
PageHook going_hook = nullptr;

std::size_t page_bytes() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

}  // namespace

void set_page_hooks(PageHook made, PageHook going) {
    made_hook = made;
    going_hook = going;
}

GuardedBuffer::GuardedBuffer(std::size_t bytes, Guard guard) : size_(bytes) {
    const std::size_t page = page_bytes();
    const std::size_t usable = (bytes / page + 1) * page;
    mapping_bytes_ = usable + 2 * page;
    void* mapped = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapping_ = static_cast<std::byte*>(mapped);
    if (mprotect(mapping_ + page, usable, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    data_ = mapping_ + page + (guard == Guard::kAfter ? usable - bytes : 0);
    std::memset(mapping_ + page, std::to_integer<int>(kSlack), usable);
    if (made_hook != nullptr) made_hook(mapping_ + page, usable);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept {
    *this = std::move(other);
}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
    if (this == &other) return *this;
    release();
    mapping_ = std::exchange(other.mapping_, nullptr);
    mapping_bytes_ = std::exchange(other.mapping_bytes_, 0);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
}

GuardedBuffer::~GuardedBuffer() {
    release();
}

void GuardedBuffer::release() {
    if (mapping_ == nullptr) return;
    if (going_hook != nullptr) going_hook(mapping_ + page_bytes(), mapping_bytes_ - 2 * page_bytes());
    munmap(mapping_, mapping_bytes_);
}

bool GuardedBuffer::slack_is_whole() const {
    if (mapping_ == nullptr) return true;
    const auto whole = [](const std::byte* begin, const std::byte* end) {
        return std::all_of(begin, end, [](std::byte byte) { return byte == kSlack; });
    };
    const std::byte* begin = mapping_ + page_bytes();
    const std::byte* end = mapping_ + mapping_bytes_ - page_bytes();
    return whole(begin, data_) && whole(data_ + size_, end);
}

}  // namespace kvjit::test
