// Memory between pages that can't be touched: one byte too far, and the test dies at the instruction that went there.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvjit::test {

/// Called with the pages of each buffer that is made, and of each that goes: to let a device reach them. Null: nothing
/// is.
using PageHook = void (*)(void* pages, std::size_t bytes);
void set_page_hooks(PageHook made, PageHook going);

/// Which end of the bytes lies exactly at a guard page. The slack at the other end is filled with a pattern.
enum class Guard { kAfter, kBefore };

/// Move-only. Aligned as far as `guard` allows: kBefore to a page, kAfter to the largest power of two that divides
/// the size. `bytes` may be 0.
class GuardedBuffer {
public:
    GuardedBuffer() = default;
    GuardedBuffer(std::size_t bytes, Guard guard);
    GuardedBuffer(GuardedBuffer&& other) noexcept;
    GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
    ~GuardedBuffer();

    std::byte* data() { return data_; }
    const std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::span<std::byte> bytes() { return {data_, size_}; }
    std::span<const std::byte> bytes() const { return {data_, size_}; }
    std::vector<std::byte> snapshot() const { return {data_, data_ + size_}; }

    /// Whether the pattern in the slack is whole.
    bool slack_is_whole() const;

private:
    void release();

    std::byte* mapping_ = nullptr;
    std::size_t mapping_bytes_ = 0;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace kvjit::test
