// A default spec block, so that every template compiles as it stands. Rendering replaces this include by the constants
// of one program; generator/src/program_table.cc decides on each.
#pragma once

#include "common/types.h"

namespace kvjit::spec {

#ifdef KVJIT_PLAIN_CACHE  // the type of queries and cache, for templates that serve no quantised one
using T1 = KVJIT_PLAIN_CACHE;
using T2 = KVJIT_PLAIN_CACHE;
#else
using T1 = f16_t;  // query, current key and value, mask, outputs
using T2 = i8_t;   // cache element: T1, float, f16_t, bf16_t, i8_t, i4x2_t
#endif
using T3 = f16_t;       // quantisation scale
using Index = i64;      // element of the table: i64 or i32
using Partial = float;  // merge: element of the partial outputs

constexpr int kHeadDim = 128;
constexpr int kGroup = 4;         // query heads per kv head
constexpr int kDecodeTokens = 4;  // CUDA: the most new tokens of a sequence that decode takes
#ifdef KVJIT_PLAIN_CACHE
constexpr int kQuantBit = 0, kQuantGroup = kHeadDim;
#else
constexpr int kQuantBit = 8;     // 0, 8, 4
constexpr int kQuantGroup = 32;  // elements that share a scale
#endif
constexpr int kPageSize = 128;       // 0: a sequence's slots are consecutive
constexpr bool kAddresses = true;    // entries of the table are addresses of blocks
constexpr bool kHeadInner = true;    // in the cache, the heads of one token lie closer than the tokens of one head
constexpr int kKeyPiece = 8;         // layouts that cut rows: elements of a piece, of keys and of values
constexpr int kValuePiece = 1;       // kHeadDim: rows are whole
constexpr int kKeyTokenPiece = 16;   // layouts that cut pages: tokens of a piece, of keys and of values
constexpr int kValueTokenPiece = 0;  // 0: pages are whole
constexpr bool kCausal = true;
constexpr bool kAlibi = false;
constexpr bool kWindow = false;
constexpr bool kSoftCap = false;
constexpr bool kSinks = false;  // attend, merge
constexpr int kMaskRank = 0;    // 0, 2, 3
constexpr bool kCached = true;  // check: keys and values lie in a cache
constexpr int kEntries = 0;     // check: what table entries are, an abi::Entries

// relayout: the cache to copy to; those above are of the cache to copy from.
using ToT2 = f16_t;
using ToT3 = float;
constexpr int kToQuantBit = 0;
constexpr int kToQuantGroup = 128;
constexpr int kToKeyPiece = 1;
constexpr int kToValuePiece = 128;
constexpr int kToKeyTokenPiece = 0;
constexpr int kToValueTokenPiece = 4;

// CUDA: the most shared memory of a block.
constexpr int kMaxSharedBytes = 99 * 1024;

// Features of the target, here those that the compiler compiles for.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
constexpr bool kHasAvx512 = true;
#else
constexpr bool kHasAvx512 = false;
#endif
#ifdef __AVX2__
constexpr bool kHasAvx2 = true;
#else
constexpr bool kHasAvx2 = false;
#endif
#ifdef __FMA__
constexpr bool kHasFma = true;
#else
constexpr bool kHasFma = false;
#endif
#ifdef __F16C__
constexpr bool kHasF16c = true;
#else
constexpr bool kHasF16c = false;
#endif
#ifdef __AVX512VNNI__
constexpr bool kHasVnni = true;
#else
constexpr bool kHasVnni = false;
#endif
#if defined(__AVX512BF16__) && defined(__SSE4A__)
constexpr bool kFastBfloat16 = true;  // products of bfloat16 pairs at the rate of FMA
#else
constexpr bool kFastBfloat16 = false;
#endif
constexpr int kVectorBytes = kHasAvx512 ? 64 : kHasAvx2 ? 32 : 16;

}  // namespace kvjit::spec
