// What AMX's tiles are tested through: one table for the instructions, others for the emulation at each level.
#pragma once

#include "common/abi.h"

namespace kvjit::test {

inline constexpr int kByteRows = 11, kByteColumns = 13, kByteDepth = 36;

/// A tile in memory: 16 rows of 64 bytes, `stride` bytes apart.
struct TileAt {
    void* rows;
    abi::i64 stride;
};

struct Tiles {
    const char* level;
    /// sum += a * b, by multiply_bfloat16.
    void (*multiply)(TileAt sum, TileAt a, TileAt b);
    /// sum += a * b, by products of bytes, a's signed or not: sum has kByteRows rows of 4 * kByteColumns bytes, a as
    /// many of kByteDepth, and b has kByteDepth / 4 rows.
    void (*multiply_signed)(TileAt sum, TileAt a, TileAt b);
    void (*multiply_unsigned)(TileAt sum, TileAt a, TileAt b);
    /// Copies, by load and store.
    void (*copy)(TileAt to, TileAt from);
    void (*zero)(TileAt to);
    /// Writes number i's 16 ints of value 100 * i + 1 into tile i, for all eight, and reads them back into row i.
    void (*fill_all)(TileAt to);
    /// The operand of LDTILECFG, 64 bytes, of tiles of 16 rows of 64 bytes, and of those of products of bytes; null
    /// where no tile is configured.
    const unsigned char* (*config)();
    const unsigned char* (*byte_config)();
};

}  // namespace kvjit::test
