#include "ptx/machine/memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "ptx/machine/fault.h"

namespace kvjit::ptx {
namespace {

std::string hex(u64 number) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

std::string count(u32 bytes) {
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

void* pointer(u64 address) {
    return reinterpret_cast<void*>(address);
}

/// The range before `address`, for messages.
std::string nearest(const std::vector<Range>& ranges, u64 address) {
    const auto after = std::ranges::upper_bound(ranges, address, {}, &Range::begin);
    if (after == ranges.begin()) return "before every allocation";
    const Range& before = *std::prev(after);
    const u64 size = before.end - before.begin;
    return hex(address - before.begin) + " bytes from the start of an allocation of " + hex(size) + " bytes";
}

}  // namespace

// ---- Allocations -------------------------------------------------------------------------------------------------

void Allocations::add(u64 begin, u64 bytes) {
    const std::lock_guard lock(mutex_);
    bytes_[begin] = bytes;
}

u64 Allocations::remove(u64 begin) {
    const std::lock_guard lock(mutex_);
    const auto found = bytes_.find(begin);
    if (found == bytes_.end()) return 0;
    const u64 bytes = found->second;
    bytes_.erase(found);
    return bytes;
}

bool Allocations::holds(u64 address, u64 bytes) const {
    const std::lock_guard lock(mutex_);
    const auto after = bytes_.upper_bound(address);
    if (after == bytes_.begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    return Range{begin, begin + size}.holds(address, bytes);
}

std::vector<Range> Allocations::ranges() const {
    const std::lock_guard lock(mutex_);
    std::vector<Range> ranges;
    for (const auto& [begin, bytes] : bytes_) ranges.push_back({begin, begin + bytes});
    return ranges;
}

// ---- Global memory -----------------------------------------------------------------------------------------------

void GlobalMemory::check(u64 address, u32 bytes, int lane) {
    if (last_.holds(address, bytes)) return;
    const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::begin);
    if (after != ranges_.begin() && std::prev(after)->holds(address, bytes)) {
        last_ = *std::prev(after);
        return;
    }
    throw Fault(
        FaultKind::kOutOfBounds,
        count(bytes) + " at " + hex(address) + " of global memory are not allocated: " + nearest(ranges_, address),
        lane);
}

// ---- Late stores -------------------------------------------------------------------------------------------------

void LateStores::check_order(u64 address, u32 bytes, const Accessor& by, bool is_store) const {
    if (writers_.empty()) return;
    const Writers* line = nullptr;
    for (u64 at = address; at < address + bytes; ++at) {
        if (at == address || at % 64 == 0) {
            const auto found = writers_.find(at / 64);
            line = found == writers_.end() ? nullptr : &found->second;
        }
        if (line == nullptr) continue;
        const Accessor& before = (*line)[at % 64];
        if (!before.conflicts(by) || (is_store && before.warp == by.warp)) continue;
        throw Fault(FaultKind::kRace,
                    "the byte at " + hex(at) + " of global memory is " + (is_store ? "written" : "read") +
                        " without a barrier after it was written by " + before.name(),
                    by.lane);
    }
}

void LateStores::store(u64 address, const void* from, u32 bytes, Accessor by) {
    check_order(address, bytes, by, true);
    for (u64 at = address; at < address + bytes; ++at) writers_[at / 64][at % 64] = by;
    Store store{address, bytes, by, epoch_, {}};
    std::memcpy(store.data, from, bytes);
    if (!is_late_) return apply(store);
    stores_.push_back(store);
    note(store);
}

void LateStores::load(u64 address, void* to, u32 bytes, Accessor by) const {
    check_order(address, bytes, by, false);
    std::memcpy(to, pointer(address), bytes);
    if (lines_.empty()) return;
    for (u32 i = 0; i < bytes; ++i) {
        const auto found = lines_.find((address + i) / 64);
        if (found == lines_.end()) {
            i += static_cast<u32>(63 - (address + i) % 64);
        } else if (const u64 at = (address + i) % 64; (found->second.written >> at & 1) != 0) {
            static_cast<std::byte*>(to)[i] = found->second.data[at];
        }
    }
}

void LateStores::apply_where(const auto& is_due) {
    std::vector<Store> later;
    lines_.clear();
    for (const Store& store : stores_) {
        if (is_due(store)) {
            apply(store);
        } else {
            later.push_back(store);
            note(store);
        }
    }
    stores_ = std::move(later);
}

void LateStores::fence(Accessor by, u32 lanes) {
    apply_where([&](const Store& store) {
        if (store.epoch < epoch_) return true;
        const bool is_own = (lanes >> store.by.lane & 1) != 0;
        return store.by.warp == by.warp && (is_own || store.by.warp_barriers < by.warp_barriers);
    });
}

void LateStores::expose(u64 address, u32 bytes) {
    if (!lines_.contains(address / 64)) return;
    apply_where(
        [&](const Store& store) { return store.address < address + bytes && address < store.address + store.bytes; });
}

void LateStores::flush() {
    apply_where([](const Store&) { return true; });
}

void LateStores::apply(const Store& store) {
    std::memcpy(pointer(store.address), store.data, store.bytes);
}

void LateStores::note(const Store& store) {
    for (u32 i = 0; i < store.bytes; ++i) {
        Line& line = lines_[(store.address + i) / 64];
        const u64 at = (store.address + i) % 64;
        line.data[at] = store.data[i];
        line.written |= u64{1} << at;
    }
}

}  // namespace kvjit::ptx
