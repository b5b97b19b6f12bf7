// Which blocks of a pool are free. Part of kvjit/interop/ksana.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "kvjit/kvjit.hpp"

namespace kvjit::interop {

/// Numbers of blocks, each of them free or taken. Move-only. What is const is thread-safe; blocks are taken and
/// released by one thread at a time.
class KsanaBlocks {
public:
    std::int64_t num_blocks() const { return num_blocks_; }
    std::int64_t num_free() const { return num_free_; }

    /// Takes `count` free blocks and writes their numbers: all of them, or none. Allocates nothing.
    /// Errors: KVJIT_BAD_ARGUMENT: a negative count, fewer free blocks, null.
    Result<void> take(std::int64_t* blocks, std::int64_t count) {
        if (count < 0 || count > num_free() || (blocks == nullptr && count != 0))
            return kvjit::detail::refusal(KVJIT_BAD_ARGUMENT, "count", count, num_free(),
                                          "so many blocks are free: " + std::to_string(num_free()) +
                                              "; their numbers go to an array that is not null");
        for (std::int64_t i = 0; i < count; ++i) {
            blocks[i] = free_[--num_free_];
            taken_[blocks[i]] = kTaken;
        }
        return {};
    }

    /// One block.
    Result<std::int64_t> take() {
        std::int64_t block = 0;
        if (Result<void> taken = take(&block, 1); !taken) return taken.error();
        return block;
    }

    /// Gives blocks back: all of them, or none. Allocates nothing.
    /// Errors: KVJIT_BAD_ARGUMENT: null, a count below 0; KVJIT_BAD_INDEX: a number that is no block's, a block that
    /// isn't taken or stands there twice.
    Result<void> release(const std::int64_t* blocks, std::int64_t count) {
        if (count < 0 || (blocks == nullptr && count != 0))
            return kvjit::detail::refusal(
                KVJIT_BAD_ARGUMENT, "count", count, 0,
                "blocks are counted from 0 on; their numbers come in an array that is not null");
        for (std::int64_t i = 0; i < count; ++i) {
            const bool inside = blocks[i] >= 0 && blocks[i] < num_blocks_;
            if (inside && taken_[blocks[i]] == kTaken) {
                taken_[blocks[i]] = kSeen;  // until all have been looked at
                continue;
            }
            for (std::int64_t j = 0; j < i; ++j) taken_[blocks[j]] = kTaken;
            const std::string says =
                inside ? "the block is not taken, or stands there twice" : "the pool has no such block";
            return kvjit::detail::refusal(KVJIT_BAD_INDEX, "blocks", blocks[i], num_blocks_, says);
        }
        for (std::int64_t i = 0; i < count; ++i) {
            taken_[blocks[i]] = kFree;
            free_[num_free_++] = blocks[i];
        }
        return {};
    }
    Result<void> release(std::int64_t block) { return release(&block, 1); }

protected:
    KsanaBlocks() = default;
    /// What was moved from has no blocks.
    KsanaBlocks(KsanaBlocks&& other) noexcept { *this = std::move(other); }
    KsanaBlocks& operator=(KsanaBlocks&& other) noexcept {
        num_blocks_ = std::exchange(other.num_blocks_, 0);
        num_free_ = std::exchange(other.num_free_, 0);
        free_ = std::move(other.free_);
        taken_ = std::move(other.taken_);
        return *this;
    }

    /// `count` blocks, all of them free; the first ones are taken first. Errors: KVJIT_OUT_OF_MEMORY.
    Result<void> free_all(std::int64_t count) {
        num_blocks_ = count;
        free_.reset(new (std::nothrow) std::int64_t[static_cast<std::size_t>(count)]);
        taken_.reset(new (std::nothrow) Taken[static_cast<std::size_t>(count)]());
        if (free_ == nullptr || taken_ == nullptr)
            return kvjit::detail::refusal(KVJIT_OUT_OF_MEMORY, "num_blocks", count, 0,
                                          "there is no memory for the list of so many blocks");
        for (std::int64_t block = count; block-- > 0;) free_[num_free_++] = block;
        return {};
    }

private:
    enum Taken : unsigned char { kFree, kTaken, kSeen };

    std::int64_t num_blocks_ = 0, num_free_ = 0;
    std::unique_ptr<std::int64_t[]> free_;  // numbers of free blocks, num_free_ of them
    std::unique_ptr<Taken[]> taken_;        // of each block
};

}  // namespace kvjit::interop
