#include "ptx/machine/shared_memory.h"

#include <limits>

#include "ptx/machine/fault.h"

namespace kvjit::ptx {
namespace {

std::string byte_at(u64 at) {
    return "byte " + std::to_string(at) + " of shared memory";
}

}  // namespace

void SharedMemory::reset(u32 bytes) {
    bytes_.assign(bytes, Byte());
    pieces_.assign((bytes + kPiece - 1) / kPiece, Piece());
    fences_.clear();
}

void SharedMemory::check(u64 address, u32 bytes, int lane) const {
    if (address >= kSharedBegin && address - kSharedBegin <= bytes_.size() &&
        bytes <= bytes_.size() - (address - kSharedBegin)) {
        return;
    }
    throw Fault(FaultKind::kOutOfBounds,
                std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + " at " +
                    std::to_string(static_cast<i64>(address - kSharedBegin)) + " of shared memory; the block has " +
                    std::to_string(bytes_.size()),
                lane);
}

void SharedMemory::note_read(Accessor& read, const Accessor& by) {
    if (read.warp == Accessor::kNobody || read.barriers != by.barriers) {
        read = by;
    } else if (read.warp != by.warp) {
        read.warp = Accessor::kMany;
    } else if (read.warp_barriers != by.warp_barriers) {
        read = by;
    } else if (read.lane != by.lane) {
        read.lane = Accessor::kMany;
    }
}

void SharedMemory::refuse(u64 at, const char* what, const Accessor& by) const {
    const Byte& byte = bytes_[at];
    const Accessor& before = byte.written.conflicts(by) ? byte.written : byte.read;
    throw Fault(FaultKind::kRace,
                byte_at(at) + " is " + what + " without a barrier after it was " +
                    (&before == &byte.written ? "written" : "read") + " by " + before.name(),
                by.lane);
}

void SharedMemory::check_there(u64 at, int lane) const {
    const State state = bytes_[at].state;
    if (state == State::kWritten) return;
    throw Fault(
        FaultKind::kUnwritten,
        byte_at(at) + " is read" +
            (state == State::kInFlight ? " while an asynchronous copy to it is under way" : ", but was never written"),
        lane);
}

void SharedMemory::check_write(u64 at, const Accessor& by) const {
    const Byte& byte = bytes_[at];
    if (byte.state == State::kInFlight) {
        throw Fault(FaultKind::kUnwritten, byte_at(at) + " is written while an asynchronous copy to it is under way",
                    by.lane);
    }
    if (byte.written.conflicts(by) || byte.read.conflicts(by)) refuse(at, "written", by);
}

void SharedMemory::put(u64 at, const void* from, u32 bytes, const Accessor& by) {
    const auto fences = static_cast<u16>(fences_of(by).size());
    for (u64 i = 0; i < bytes; ++i) {
        bytes_[at + i].value = static_cast<const std::byte*>(from)[i];
        bytes_[at + i].state = State::kWritten;
        bytes_[at + i].fences = fences;
        bytes_[at + i].written = by;
    }
}

void SharedMemory::load(u64 address, void* to, u32 bytes, Accessor by) {
    check(address, bytes, by.lane);
    for (u64 i = 0, at = address - kSharedBegin; i < bytes; ++i, ++at) {
        Byte& byte = bytes_[at];
        if (byte.state != State::kWritten) check_there(at, by.lane);
        if (byte.written.conflicts(by)) refuse(at, "read", by);
        note_read(byte.read, by);
        static_cast<std::byte*>(to)[i] = byte.value;
    }
}

void SharedMemory::store(u64 address, const void* from, u32 bytes, Accessor by) {
    check(address, bytes, by.lane);
    const u64 begin = address - kSharedBegin;
    overwrite_pieces(begin, bytes, by);
    for (u64 at = begin; at < begin + bytes; ++at) check_write(at, by);
    put(begin, from, bytes, by);
}

void SharedMemory::begin_copy(u64 address, u32 bytes, bool poisoned, Accessor by) {
    check(address, bytes, by.lane);
    const u64 begin = address - kSharedBegin;
    overwrite_pieces(begin, bytes, by);
    for (u64 at = begin; poisoned && at < begin + bytes; ++at) {
        check_write(at, by);
        bytes_[at].state = State::kInFlight;
    }
}

void SharedMemory::end_copy(u64 address, const void* from, u32 bytes, Accessor by) {
    const u64 begin = address - kSharedBegin;
    for (u64 piece = begin / kPiece; piece <= (begin + bytes - 1) / kPiece; ++piece) pieces_[piece].checked = 0;
    put(begin, from, bytes, by);
}

// ---- The async proxy ---------------------------------------------------------------------------------------------

std::vector<u16>& SharedMemory::fences_of(const Accessor& by) {
    const std::size_t thread = std::size_t{by.warp} * kLanes + by.lane;
    if (thread >= fences_.size()) fences_.resize(thread + 1);
    return fences_[thread];
}

void SharedMemory::fence(Accessor by) {
    std::vector<u16>& fences = fences_of(by);
    if (fences.size() == std::numeric_limits<u16>::max()) {
        throw Fault(FaultKind::kText, "more fences of the async proxy than are counted", by.lane);
    }
    fences.push_back(by.barriers);
}

/// A write to bytes that an operation reads comes after its warp's wait; another warp's also after a barrier.
void SharedMemory::overwrite_pieces(u64 at, u32 bytes, const Accessor& by) {
    for (u64 i = at / kPiece; i <= (at + bytes - 1) / kPiece; ++i) {
        Piece& piece = pieces_[i];
        piece.checked = 0;
        if (piece.pending != 0) {
            throw Fault(FaultKind::kRace,
                        byte_at(at) + " is written while a wgmma.mma_async that reads it has not been waited for",
                        by.lane);
        }
        if (piece.warp == Accessor::kNobody || piece.barriers != by.barriers || piece.warp == by.warp) continue;
        throw Fault(FaultKind::kRace,
                    byte_at(at) + " is written without a barrier after a wgmma.mma_async read it, for which " +
                        Accessor{piece.warp, Accessor::kMany, 0, 0}.name() + " waited",
                    by.lane);
    }
}

/// ISA 9.7.15.4: a fence between the proxies comes after the write, by the thread that wrote, since nothing orders its
/// write for another one before. The four warps read together, so a barrier of the block comes after the fence.
void SharedMemory::check_fenced(u64 at, const Accessor& by) const {
    const Byte& byte = bytes_[at];
    const std::size_t thread = std::size_t{byte.written.warp} * kLanes + byte.written.lane;
    const std::vector<u16>& fences = fences_[thread];
    const bool is_fenced = fences.size() > byte.fences;
    if (is_fenced && fences[byte.fences] < by.barriers) return;
    throw Fault(FaultKind::kRace,
                byte_at(at) + " is read in the async proxy without a " +
                    (is_fenced ? "barrier since the fence.proxy.async of " : "fence.proxy.async of ") +
                    byte.written.name() + (is_fenced ? "" : ", which wrote it"));
}

void SharedMemory::begin_read(u64 address, Accessor by) {
    check(address, kPiece, Fault::kNoLane);
    const u64 begin = address - kSharedBegin;
    Piece& piece = pieces_[begin / kPiece];
    if (piece.checked != u32{by.barriers} + 1) {
        for (u64 at = begin; at < begin + kPiece; ++at) {
            check_there(at, Fault::kNoLane);
            check_fenced(at, by);
        }
        piece.checked = u32{by.barriers} + 1;
    }
    ++piece.pending;
}

void SharedMemory::end_read(u64 address, Accessor by) {
    Piece& piece = pieces_[(address - kSharedBegin) / kPiece];
    --piece.pending;
    const bool is_first = piece.warp == Accessor::kNobody || piece.barriers != by.barriers;
    piece.warp = is_first || piece.warp == by.warp ? by.warp : Accessor::kMany;
    piece.barriers = by.barriers;
}

void SharedMemory::read(u64 address, void* to) const {
    const Byte* from = &bytes_[address - kSharedBegin];
    for (u32 i = 0; i < kPiece; ++i) static_cast<std::byte*>(to)[i] = from[i].value;
}

}  // namespace kvjit::ptx
