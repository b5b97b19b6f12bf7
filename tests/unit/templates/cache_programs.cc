// store and load with the spec block that the include path finds.
#include "program_names.h"

#include "cpu/load.cc"
#include "cpu/store.cc"

using namespace kvjit;

extern "C" const test::CachePrograms KVJIT_JOIN(programs_, KVJIT_CASE);
const test::CachePrograms KVJIT_JOIN(programs_, KVJIT_CASE) = {KVJIT_TEXT(KVJIT_CASE),
                                                               KVJIT_TEXT(KVJIT_LEVEL),
                                                               test::kTypeOf<T1>,
                                                               test::kTypeOf<T2>,
                                                               test::kTypeOf<T3>,
                                                               sizeof(Index),
                                                               kHeadDim,
                                                               kQuantBit,
                                                               kQuantGroup,
                                                               kPageSize,
                                                               kHeadInner,
                                                               kvjit_store,
                                                               kvjit_load};
