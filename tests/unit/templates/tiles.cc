// AMX's tiles as plain functions: the instructions, or where KVJIT_EMULATED is defined what stands for them.
#include "tiles.h"

#ifdef KVJIT_EMULATED
#include "cpu/machine/tiles/emulated.h"
#else
#include "cpu/machine/tiles/amx.h"
#endif
#include "program_names.h"

namespace kvjit::test {
namespace {

void multiply(TileAt sum, TileAt a, TileAt b) {
    TileRegisters tiles;
    tiles.load<3>(sum.rows, sum.stride);
    tiles.load<7>(a.rows, a.stride);
    tiles.load<0>(b.rows, b.stride);
    tiles.multiply_bfloat16<3, 7, 0>();
    tiles.store<3>(sum.rows, sum.stride);
}
constexpr TileShapes kByteShapes = {
    .rows = {kByteDepth / 4, 0, 0, kByteRows, 0, 0, 0, kByteRows},
    .row_bytes = {4 * kByteColumns, 0, 0, 4 * kByteColumns, 0, 0, 0, kByteDepth},
};
template <bool kSigned>
void multiply_bytes(TileAt sum, TileAt a, TileAt b) {
    TileRegisters tiles(kByteShapes);
    tiles.load<3>(sum.rows, sum.stride);
    tiles.load<7>(a.rows, a.stride);
    tiles.load<0>(b.rows, b.stride);
    if constexpr (kSigned)
        tiles.multiply_signed_bytes<3, 7, 0>();
    else
        tiles.multiply_unsigned_bytes<3, 7, 0>();
    tiles.store<3>(sum.rows, sum.stride);
}
void copy(TileAt to, TileAt from) {
    TileRegisters tiles;
    tiles.load<5>(from.rows, from.stride);
    tiles.store<5>(to.rows, to.stride);
}
void zero(TileAt to) {
    TileRegisters tiles;
    tiles.load<2>(to.rows, to.stride);
    tiles.zero<2>();
    tiles.store<2>(to.rows, to.stride);
}

template <int kTile>
void load_number(TileRegisters& tiles) {
    i32 rows[16][16];
    for (auto& row : rows) {
        for (i32& element : row) element = 100 * kTile + 1;
    }
    tiles.load<kTile>(rows, 64);
}
template <int kTile>
void store_first_row(TileRegisters& tiles, TileAt to) {
    i32 rows[16][16];
    tiles.store<kTile>(rows, 64);
    for (int i = 0; i < 16; ++i)
        reinterpret_cast<i32*>(static_cast<char*>(to.rows) + kTile * to.stride)[i] = rows[0][i];
}

void fill_all(TileAt to) {
    TileRegisters tiles;
    const auto each = [&](auto&& f) {
        f.template operator()<0>();
        f.template operator()<1>();
        f.template operator()<2>();
        f.template operator()<3>();
        f.template operator()<4>();
        f.template operator()<5>();
        f.template operator()<6>();
        f.template operator()<7>();
    };
    each([&]<int kTile>() { load_number<kTile>(tiles); });
    each([&]<int kTile>() { store_first_row<kTile>(tiles, to); });
}

#ifndef KVJIT_EMULATED
const u8* config() {
    static const TileConfig operand{TileShapes{}};
    return reinterpret_cast<const u8*>(&operand);
}
const u8* byte_config() {
    static const TileConfig operand{kByteShapes};
    return reinterpret_cast<const u8*>(&operand);
}
#else
constexpr const u8* (*config)() = nullptr;
constexpr const u8* (*byte_config)() = nullptr;
#endif

}  // namespace
}  // namespace kvjit::test

extern "C" const kvjit::test::Tiles KVJIT_CASE;
const kvjit::test::Tiles KVJIT_CASE = {
    KVJIT_TEXT(KVJIT_LEVEL),
    kvjit::test::multiply,
    kvjit::test::multiply_bytes<true>,
    kvjit::test::multiply_bytes<false>,
    kvjit::test::copy,
    kvjit::test::zero,
    kvjit::test::fill_all,
    kvjit::test::config,
    kvjit::test::byte_config,
};
