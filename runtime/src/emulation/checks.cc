#include "emulation/checks.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

namespace kvjit::emulation {
namespace {

constexpr std::uintptr_t kNullPage = 4096;

/// Accesses of one thread since it last met others. More come from a loop that waits for another thread to write:
/// blocks run one after the other, and threads until they meet.
constexpr i64 kMostSteps = i64{1} << 24;

std::string number(i64 value) {
    return std::to_string(value);
}

std::string hexadecimal(const void* address) {
    char digits[2 * sizeof(address)];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), reinterpret_cast<std::uintptr_t>(address), 16);
    return "0x" + std::string(digits, end.ptr);
}

}  // namespace

void Checks::start_launch(const void* entry, const void* ignored, std::size_t ignored_bytes) {
    entry_ = static_cast<const char*>(entry);
    ignored_ = static_cast<const char*>(ignored);
    ignored_bytes_ = ignored_bytes;
    launch_start_ = meetings_.block_epoch() + 1;
    blocks_.clear();
    order_.start_launch();
    global_.start_launch();
}

void Checks::forget() {
    shared_cells_ = Cells(static_cast<std::size_t>(SharedMemory::kMostBytes));
    global_.clear();
}

void Checks::start_block(i64 x, i64 y, int threads) {
    blocks_.push_back({meetings_.block_epoch(), x, y});
    order_.start_block(threads);
}

Actor Checks::actor(const Fiber& self, Touch touch, const void* where, bool whole_warp) const {
    const auto place = static_cast<Place>(static_cast<const char*>(where) - entry_);
    const Epoch warp_epoch = meetings_.warp_epoch(self.index / kWarpLanes);
    return {Mark(meetings_.block_epoch(), warp_epoch, self.index, touch, place),
            whole_warp ? kAllLanes : 1U << self.index % kWarpLanes, blocks_.back().start, launch_start_};
}

bool Checks::is_ignored(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(ignored_) < ignored_bytes_;
}

bool Checks::access(Fiber& self, const Access& access) {
    const bool endless = ++self.steps >= kMostSteps;
    if (!endless && is_ignored(access.address)) return true;
    actor_ = actor(self, access.touch, access.where, access.whole_warp);
    fault_ = endless ? Fault::kEndless : find_fault(access);
    access_ = access;
    return fault_ == Fault::kNone;
}

Checks::Fault Checks::find_fault(const Access& access) {
    const auto address = reinterpret_cast<std::uintptr_t>(access.address);
    if (address < kNullPage) return Fault::kNull;
    if (address % static_cast<std::uintptr_t>(access.alignment) != 0) return Fault::kMisaligned;
    if (shared_.near(access.address)) {
        if (!shared_.contains(access.address, access.bytes)) return Fault::kOutside;
        finding_ = shared_cells_.touch(static_cast<std::size_t>(shared_.offset(access.address)),
                                       static_cast<std::size_t>(access.bytes), actor_, nullptr);
    } else {
        if (access.space == Space::kShared) return Fault::kNotShared;
        if (stacks_.contains(access.address)) return Fault::kForeignStack;
        finding_ = global_.touch(access.address, access.bytes, actor_, order_);
    }
    return finding_.conflict == Conflict::kNone ? Fault::kNone : Fault::kConflict;
}

void Checks::fence(const Fiber& self) {
    order_.fence(actor(self, Touch::kRead, entry_));
}

void Checks::atomic(const Fiber& self, const void* address) {
    if (!shared_.near(address)) order_.atomic(address, actor(self, Touch::kAtomic, entry_));
}

std::string Checks::line(Place place) const {
    char text[256];
    lines_.find(lines_.context, reinterpret_cast<std::uintptr_t>(entry_ + place - 1), text, sizeof text);
    return text;
}

std::string Checks::block_of(const Mark& mark) const {
    const auto next = std::ranges::upper_bound(blocks_, mark.epoch(), {}, &Block::start);
    const Block& block = *(next - 1);
    return "block " + number(block.x) + ", " + number(block.y);
}

std::string Checks::subject() const {
    const std::string thread = "thread " + number(actor_.mark.thread());
    switch (access_.touch) {
        case Touch::kAtomic:
            return thread + " adds to ";
        case Touch::kWrite:
            return thread + " writes ";
        case Touch::kIssue:
            return thread + " has copy_async write ";
        case Touch::kRead:
        case Touch::kArrive:
            break;
    }
    return (access_.whole_warp ? "the warp of " : "") + thread + " reads ";
}

std::string Checks::endless() const {
    return "thread " + number(actor_.mark.thread()) + " has accessed memory " + number(kMostSteps) +
           " times without meeting others, the last time at " + line(actor_.mark.place()) +
           ": it seems to wait for what never comes";
}

std::string Checks::wrong() const {
    if (fault_ == Fault::kEndless) return endless();
    const std::string where = shared_.near(access_.address)
                                  ? "shared memory at offset " + number(shared_.offset(access_.address))
                                  : "global memory at address " + hexadecimal(access_.address);
    return subject() + number(access_.bytes) + " bytes of " + where + " at " + line(actor_.mark.place()) +
           what_is_wrong();
}

std::string Checks::what_is_wrong() const {
    switch (fault_) {
        case Fault::kNull:
            return ": that is a null pointer";
        case Fault::kMisaligned:
            return ": the address is no multiple of " + number(access_.alignment);
        case Fault::kForeignStack:
            return ": that is a local variable of another thread";
        case Fault::kNotShared:
            return ": that must be shared memory";
        case Fault::kOutside:
            return ": the launch gave " + number(shared_.bytes()) + " bytes";
        case Fault::kConflict:
        case Fault::kEndless:
        case Fault::kNone:
            break;
    }
    return collision();
}

std::string Checks::collision() const {
    const Mark& other = finding_.other;
    const std::string thread = "thread " + number(other.thread());
    const std::string copied = other.touch() == Touch::kArrive ? " by copy_async" : "";
    switch (finding_.conflict) {
        case Conflict::kNeverWritten:
            return ": no thread of the block has written them so far";
        case Conflict::kInFlight:
            return ": that is where the copy_async of " + thread + " at " + line(other.place()) +
                   " goes, which it has not waited for";
        case Conflict::kWritten:
            return ": " + thread + " wrote them" + copied + " at " + line(other.place()) + " with no barrier between";
        case Conflict::kAtomic:
            return ": " + thread + " added to them at " + line(other.place()) + " with no barrier between";
        case Conflict::kRead:
            return ": " + thread + " read them at " + line(other.place()) + " with no barrier between";
        case Conflict::kOtherBlockWrote:
            return ": " + thread + " of " + block_of(other) + " wrote them at " + line(other.place()) +
                   " with no fence, atomic_add and fence between";
        case Conflict::kOtherBlockRead:
            return ": " + thread + " of " + block_of(other) + " read them at " + line(other.place()) +
                   " with no fence, atomic_add and fence between";
        case Conflict::kNone:
            break;
    }
    return {};
}

}  // namespace kvjit::emulation
