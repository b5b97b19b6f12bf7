// A block's shared memory: what of it may be read and written, by whom.
#pragma once

#include <string>
#include <vector>

#include "ptx/machine/accessor.h"
#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

class SharedMemory {
public:
    /// As at a kernel's start: nothing is written.
    void reset(u32 bytes);

    void load(u64 address, void* to, u32 bytes, Accessor by);
    void store(u64 address, const void* from, u32 bytes, Accessor by);

    /// An asynchronous copy is issued; it writes these bytes until end_copy. Where it is `poisoned`, nothing else may
    /// touch them until then.
    void begin_copy(u64 address, u32 bytes, bool poisoned, Accessor by);
    void end_copy(u64 address, const void* from, u32 bytes, Accessor by);

    // ---- The async proxy, in which wgmma reads pieces of 16 bytes: ISA 9.7.15.4 ----------------------------------

    static constexpr u32 kPiece = 16;

    /// fence.proxy.async of a lane: what it wrote until now can be read in the async proxy, once a barrier follows.
    void fence(Accessor by);
    /// A warp's wgmma may read the piece from now until end_read. Errors: Fault for what may not be read so.
    void begin_read(u64 address, Accessor by);
    void end_read(u64 address, Accessor by);
    void read(u64 address, void* to) const;

private:
    enum class State : u8 { kWritten, kUnwritten, kInFlight };
    /// A byte, with its last write and the last reads: kMany where several lanes, or warps, have read it since the
    /// barriers that are noted.
    struct Byte {
        std::byte value{0xff};
        State state = State::kUnwritten;
        u16 fences = 0;  // of the async proxy, that its writer had executed before
        Accessor written;
        Accessor read;
    };
    struct Piece {
        u32 checked = 0;  // barriers and 1 when all its bytes were last found to be readable in the async proxy
        u16 pending = 0;  // operations under way that read it, each of one warp
        u16 barriers = 0;
        u8 warp = Accessor::kNobody;  // that had read it when its operation was waited for
    };
    static void note_read(Accessor& read, const Accessor& by);
    void check(u64 address, u32 bytes, int lane) const;
    void check_there(u64 at, int lane) const;
    void check_write(u64 at, const Accessor& by) const;
    void check_fenced(u64 at, const Accessor& by) const;
    void overwrite_pieces(u64 at, u32 bytes, const Accessor& by);
    [[noreturn]] void refuse(u64 at, const char* what, const Accessor& by) const;
    std::vector<u16>& fences_of(const Accessor& by);
    void put(u64 at, const void* from, u32 bytes, const Accessor& by);

    std::vector<Byte> bytes_;
    std::vector<Piece> pieces_;
    std::vector<std::vector<u16>> fences_;  // by thread: the block's barriers at each of its fences of the async proxy
};

}  // namespace kvjit::ptx
