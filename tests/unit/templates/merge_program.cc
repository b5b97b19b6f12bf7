// merge with the spec block that the include path finds.
#include "program_names.h"

#include "cpu/merge.cc"

using namespace kvjit;

extern "C" const test::MergeProgram KVJIT_JOIN(programs_, KVJIT_CASE);
const test::MergeProgram KVJIT_JOIN(programs_, KVJIT_CASE) = {
    KVJIT_TEXT(KVJIT_CASE), KVJIT_TEXT(KVJIT_LEVEL), test::kTypeOf<T1>, test::kTypeOf<Partial>, kHeadDim, kvjit_merge};
