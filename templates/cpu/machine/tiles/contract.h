// All that kernels use of AMX. Rendering replaces an include of this file by cpu/machine/tiles/amx.h, or, where the
// target says amx-emulated, by cpu/machine/tiles/emulated.h. Both define every name below and give the same bits.
//
// TileShapes                       of tile i rows[i] rows, up to 16, of row_bytes[i] bytes, up to 64: 16 of 64 unless
//                                  something else is said. A tile that is not used may have neither; one of the two
//                                  alone is a fault.
// TileRegisters tiles(shapes)      the thread's eight tiles, numbered from 0, of 16 rows of 64 bytes if no shapes are
//                                  given. While the object lives the thread uses no other. Its destructor gives the
//                                  thread the configuration back that it had before, with tiles that are zero; where
//                                  it had none it releases them, so that a switch of threads needn't save them.
// tiles.zero<kTile>()
// tiles.load<kTile>(rows, stride)  row i becomes the bytes at rows + i * stride. The stride is in bytes; addresses
//                                  need no alignment. Nothing between the rows is read.
// tiles.store<kTile>(rows, stride)
// tiles.multiply_bfloat16<kSum, kA, kB>()
//                                  sum[m][n] += sum over k of a[m][2k] b[k][2n] + a[m][2k+1] b[k][2n+1]: a and b hold
//                                  pairs of bfloat16, sum holds floats. The products of even elements are added to
//                                  each other in ascending order, those of odd elements likewise, from 0 on, each
//                                  rounded once; then both are added; then that is added to sum. To nearest even;
//                                  subnormal numbers, given or computed, count as 0 (Intel SDM, TDPBF16PS). Which NaN
//                                  comes out is unspecified. All three are of 16 rows of 64 bytes.
// tiles.stay_awake()               keeps the unit of products on: some 300 ns after its last product it goes to sleep,
//                                  and then takes as long to be at its full speed again. All tiles are of 16 rows of
//                                  64 bytes; what tile 0 holds afterwards is unspecified.
// tiles.multiply_signed_bytes<kSum, kA, kB>(), tiles.multiply_unsigned_bytes<kSum, kA, kB>()
//                                  sum[m][n] += sum over k of a[m][4k] b[k][4n] + ... + a[m][4k+3] b[k][4n+3], modulo
//                                  2^32: b holds signed bytes and a signed or unsigned ones, sum holds integers. a has
//                                  as many rows as sum, and its rows as many times 4 bytes as b has rows; b's rows are
//                                  as long as those of sum. Other shapes are a fault.
#pragma once

// For compilers that see the templates as they stand.
#ifdef __AMX_BF16__
#include "cpu/machine/tiles/amx.h"
#else
#include "cpu/machine/tiles/emulated.h"
#endif
