// attend for few query rows, by dot products in float32 (docs/semantics.md, section 3): for queries or caches of
// float32. Work split: cuda/attend/decode.h. Everything else, which prefill
// shares: cuda/attend/dot/attend.h.
#include "cuda/attend/decode.h"
#include "cuda/attend/dot/attend.h"

KVJIT_ENTRY(kvjit::Dot<true>::kShape.threads, kvjit::Dot<true>::kShape.blocks_per_sm)
kvjit_attend_decode(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Dot<true>>(args);
}
