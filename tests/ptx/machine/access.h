// Instructions that access memory. Each lane's address must be a multiple of all that it accesses there.
#pragma once

#include <atomic>
#include <string>

#include "ptx/machine/warp.h"

namespace kvjit::ptx {

enum class Space { kGeneric, kGlobal, kShared, kParameter };

inline void check_alignment(u64 address, u32 bytes, int lane) {
    if (address % bytes == 0) return;
    throw Fault(FaultKind::kMisaligned,
                "an access of " + std::to_string(bytes) + " bytes at an address that is " +
                    std::to_string(address % bytes) + " more than a multiple of that",
                lane);
}

inline void load_parameters(const BlockState& block, u64 address, void* to, u32 bytes, int lane) {
    const u32 available = block.parameter_bytes;
    if (address < kParameterBegin || address + bytes > kParameterBegin + available) {
        throw Fault(FaultKind::kOutOfBounds,
                    std::to_string(bytes) + " bytes at " + std::to_string(static_cast<i64>(address - kParameterBegin)) +
                        " of the parameters, which have " + std::to_string(available),
                    lane);
    }
    std::memcpy(to, block.parameters + (address - kParameterBegin), bytes);
}

template <Space kSpace>
void load_bytes(Warp& warp, u64 address, void* to, u32 bytes, int lane) {
    BlockState& block = warp.block();
    check_alignment(address, bytes, lane);
    if constexpr (kSpace == Space::kGeneric) {
        if (address >= kSharedWindow) {
            return load_bytes<Space::kShared>(warp, address - kSharedWindow, to, bytes, lane);
        }
        return load_bytes<Space::kGlobal>(warp, address, to, bytes, lane);
    } else if constexpr (kSpace == Space::kGlobal) {
        block.global->check(address, bytes, lane);
        block.stores.load(address, to, bytes, warp.accessor(lane));
    } else if constexpr (kSpace == Space::kShared) {
        block.shared.load(address, to, bytes, warp.accessor(lane));
    } else {
        load_parameters(block, address, to, bytes, lane);
    }
}

template <Space kSpace>
void store_bytes(Warp& warp, u64 address, const void* from, u32 bytes, int lane) {
    BlockState& block = warp.block();
    check_alignment(address, bytes, lane);
    if constexpr (kSpace == Space::kGeneric) {
        if (address >= kSharedWindow)
            return store_bytes<Space::kShared>(warp, address - kSharedWindow, from, bytes, lane);
        return store_bytes<Space::kGlobal>(warp, address, from, bytes, lane);
    } else if constexpr (kSpace == Space::kGlobal) {
        block.global->check(address, bytes, lane);
        block.stores.store(address, from, bytes, warp.accessor(lane));
    } else {
        block.shared.store(address, from, bytes, warp.accessor(lane));
    }
}

/// ld of kCount elements T into registers of type D, which may be wider: extended by T's sign.
template <Space kSpace, class Base, class T, class D = T, int kCount = 1>
void load(Warp& warp, const Instruction& in) {
    const Base* base = warp.lanes<Base>(in.source(0));
    D results[kCount][kLanes] = {};
    for (int l = 0; l < kLanes; ++l) {
        if (!warp.is_active(l)) continue;
        T elements[kCount];
        load_bytes<kSpace>(warp, base[l] + static_cast<u64>(i64{in.offsets[0]}), elements, sizeof elements, l);
        for (int i = 0; i < kCount; ++i) results[i][l] = static_cast<D>(elements[i]);
    }
    for (int i = 0; i < kCount; ++i) warp.put(in.destination(i), results[i]);
}

template <Space kSpace, class Base, class T, class S = T, int kCount = 1>
void store(Warp& warp, const Instruction& in) {
    const Base* base = warp.lanes<Base>(in.source(0));
    for (int l = 0; l < kLanes; ++l) {
        if (!warp.is_active(l)) continue;
        T elements[kCount];
        for (int i = 0; i < kCount; ++i) elements[i] = static_cast<T>(warp.lanes<S>(in.source(1 + i))[l]);
        store_bytes<kSpace>(warp, base[l] + static_cast<u64>(i64{in.offsets[0]}), elements, sizeof elements, l);
    }
}

/// cvta to a state space, and from one to a generic address.
template <Space kSpace>
void to_space(Warp& warp, const Instruction& in) {
    const u64* a = warp.lanes<u64>(in.source(0));
    u64 results[kLanes] = {};
    for (int l = 0; l < kLanes; ++l) {
        if (!warp.is_active(l)) continue;
        const bool is_shared = a[l] >= kSharedWindow;
        if (is_shared != (kSpace == Space::kShared)) {
            throw Fault(FaultKind::kUndefined, "a generic address of another state space", l);
        }
        results[l] = is_shared ? a[l] - kSharedWindow : a[l];
    }
    warp.put(in.destination(0), results);
}
inline void from_shared(Warp& warp, const Instruction& in) {
    const u64* a = warp.lanes<u64>(in.source(0));
    u64 results[kLanes];
    for (int l = 0; l < kLanes; ++l) results[l] = a[l] + kSharedWindow;
    warp.put(in.destination(0), results);
}

/// cp.async of as many bytes as its text says, of which a third operand may say how many are read; the others become
/// zeros.
template <bool kHasSize, u32 kOnly = 0>
void copy_async(Warp& warp, const Instruction& in) {
    const auto bytes = static_cast<u32>(in.immediates[0]);
    const bool is_legal = kOnly != 0 ? bytes == kOnly : bytes == 4 || bytes == 8 || bytes == 16;
    if (!is_legal) throw Fault(FaultKind::kText, "it can't copy " + std::to_string(bytes) + " bytes");
    const u32* shared = warp.lanes<u32>(in.source(0));
    const u64* global = warp.lanes<u64>(in.source(1));
    for (int l = 0; l < kLanes; ++l) {
        if (!warp.is_active(l)) continue;
        const u32 read = kHasSize ? warp.lanes<u32>(in.source(2))[l] : bytes;
        if (read > bytes) throw Fault(FaultKind::kUndefined, "more bytes are read than written", l);
        const u64 to = shared[l] + static_cast<u64>(i64{in.offsets[0]});
        const u64 from = global[l] + static_cast<u64>(i64{in.offsets[1]});
        check_alignment(to, bytes, l);
        check_alignment(from, bytes, l);
        warp.begin_copy(l, to, from, bytes, read);
    }
}
inline void commit_copies(Warp& warp, const Instruction&) {
    warp.commit_copies();
}
inline void wait_copies(Warp& warp, const Instruction& in) {
    warp.wait_copies(in.immediates[0]);
}

/// atom.relaxed.gpu.add.u32. What this block stored there before is in order, as all accesses to one place are.
inline void atomic_add(Warp& warp, const Instruction& in) {
    const u64* base = warp.lanes<u64>(in.source(0));
    const u32* add = warp.lanes<u32>(in.source(1));
    u32 results[kLanes] = {};
    for (int l = 0; l < kLanes; ++l) {
        if (!warp.is_active(l)) continue;
        const u64 address = base[l] + static_cast<u64>(i64{in.offsets[0]});
        check_alignment(address, 4, l);
        warp.block().global->check(address, 4, l);
        warp.block().stores.expose(address, 4);
        results[l] = std::atomic_ref(*reinterpret_cast<u32*>(address)).fetch_add(add[l]);
    }
    warp.put(in.destination(0), results);
    warp.end_turn();
}

inline void fence(Warp& warp, const Instruction&) {
    warp.block().stores.fence(warp.accessor(0), warp.mask());
}

}  // namespace kvjit::ptx
