// Includes nothing of the standard library, as register_loop.cc doesn't.
#include "limits/bfloat16_loops.h"

#include <immintrin.h>

namespace kvjit::limits {
namespace {

/// More than a product's latency times the ports that take it: no one waits for another.
constexpr int kChains = 12;

constexpr int kTileRows = 16, kTileBytes = 64;  // a row: 16 float32 or 32 bfloat16
constexpr int kTileSize = kTileRows * kTileBytes;
/// 16 by 16 sums of 32 products.
constexpr double kTileOperations = 2.0 * 16 * 16 * 32;

struct alignas(64) TileConfig {
    unsigned char palette = 1, start_row = 0, reserved[14] = {};
    unsigned short row_bytes[16] = {};
    unsigned char rows[16] = {};
};

/// Tiles of the largest size; the loop uses all eight.
TileConfig full_tiles() {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
        config.row_bytes[tile] = kTileBytes;
        config.rows[tile] = kTileRows;
    }
    return config;
}

}  // namespace

double bfloat16_pairs_loop(long rounds) {
    __m512 chains[kChains];
    __m512i bits = _mm512_set1_epi32(0x3f003f00);  // 0.5
    // Nobody knows any of these values, so nothing can be computed before or left out.
    __asm__("" : "+v"(bits));
    for (int i = 0; i < kChains; ++i) __asm__("" : "=v"(chains[i]));
    const __m512bh factor = (__m512bh)bits;
    for (long round = 0; round < rounds; ++round) {
        for (int i = 0; i < kChains; ++i) chains[i] = _mm512_dpbf16_ps(chains[i], factor, factor);
    }
    for (int i = 0; i < kChains; ++i) __asm__ volatile("" ::"v"(chains[i]));
    return 2.0 * 32 * kChains * static_cast<double>(rounds);
}

/// Two rows of tiles times two columns: four products for four tiles loaded, the most that eight tiles allow.
double bfloat16_tiles_loop(long rounds) {
    constexpr int kSets = 4;  // 16 KB
    alignas(64) static thread_local unsigned short factors[kSets * 4 * kTileSize / 2];
    alignas(64) static thread_local float sums[kTileSize / 4];
    for (unsigned short& factor : factors) factor = 0x3f00;  // 0.5
    const TileConfig config = full_tiles();
    // GCC doesn't know that the tiles' instructions read these.
    __asm__ volatile("" ::"r"(factors), "r"(&config) : "memory");
    _tile_loadconfig(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (long round = 0; round < rounds; ++round) {
        const unsigned short* set = factors + round % kSets * (4 * kTileSize / 2);
        _tile_loadd(4, set, kTileBytes);
        _tile_loadd(5, set + kTileSize / 2, kTileBytes);
        _tile_loadd(6, set + 2 * kTileSize / 2, kTileBytes);
        _tile_loadd(7, set + 3 * kTileSize / 2, kTileBytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, kTileBytes);
    _tile_release();
    __asm__ volatile("" ::"r"(sums) : "memory");
    return 4 * kTileOperations * static_cast<double>(rounds);
}

}  // namespace kvjit::limits
