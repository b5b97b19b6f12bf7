// cpu/machine/tiles/contract.h by AMX. The thread's process needs the permission of the system.
#pragma once

#include "cpu/machine/tiles/shapes.h"

namespace kvjit {

/// Operand of LDTILECFG: palette 1, which has eight tiles. Any other byte but 0 is a fault.
struct alignas(64) TileConfig {
    u8 palette = 1;
    u8 start_row = 0;
    u8 reserved[14] = {};
    u16 row_bytes[8];
    u16 no_row_bytes[8] = {};
    u8 rows[8];
    u8 no_rows[8] = {};

    TileConfig() = default;
    KVJIT_INLINE explicit TileConfig(const TileShapes& shapes) {
#pragma clang loop unroll(full)
        for (int i = 0; i < 8; ++i) {
            row_bytes[i] = shapes.row_bytes[i];
            rows[i] = shapes.rows[i];
        }
    }
};
static_assert(sizeof(TileConfig) == 64);

class TileRegisters {
public:
    KVJIT_INLINE explicit TileRegisters(const TileShapes& shapes = {}) {
        __builtin_ia32_tile_storeconfig(&callers_);
        const TileConfig config(shapes);
        __builtin_ia32_tile_loadconfig(&config);
    }
    KVJIT_INLINE ~TileRegisters() {
        if (callers_.palette != 0)
            __builtin_ia32_tile_loadconfig(&callers_);
        else
            __builtin_ia32_tilerelease();
    }
    TileRegisters(const TileRegisters&) = delete;
    TileRegisters& operator=(const TileRegisters&) = delete;

    template <int kTile>
    KVJIT_INLINE void zero() {
        __builtin_ia32_tilezero(kTile);
    }
    template <int kTile>
    KVJIT_INLINE void load(const void* rows, i64 stride) {
        __builtin_ia32_tileloadd64(kTile, rows, static_cast<__SIZE_TYPE__>(stride));
    }
    template <int kTile>
    KVJIT_INLINE void store(void* rows, i64 stride) {
        __builtin_ia32_tilestored64(kTile, rows, static_cast<__SIZE_TYPE__>(stride));
    }
    template <int kSum, int kA, int kB>
    KVJIT_INLINE void multiply_bfloat16() {
        __builtin_ia32_tdpbf16ps(kSum, kA, kB);
    }
    KVJIT_INLINE void stay_awake() { multiply_bfloat16<0, 1, 2>(); }
    template <int kSum, int kA, int kB>
    KVJIT_INLINE void multiply_signed_bytes() {
        __builtin_ia32_tdpbssd(kSum, kA, kB);
    }
    template <int kSum, int kA, int kB>
    KVJIT_INLINE void multiply_unsigned_bytes() {
        __builtin_ia32_tdpbusd(kSum, kA, kB);
    }

private:
    TileConfig callers_;
};

}  // namespace kvjit
