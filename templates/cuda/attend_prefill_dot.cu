// attend for many query rows, by dot products in float32 (docs/semantics.md, section 3): for queries or caches of
// float32. Work split: cuda/attend/prefill.h. Everything else, which decode
// shares: cuda/attend/dot/attend.h.
#include "cuda/attend/dot/attend.h"
#include "cuda/attend/prefill.h"

KVJIT_ENTRY(kvjit::Dot<false>::kShape.threads, kvjit::Dot<false>::kShape.blocks_per_sm)
kvjit_attend_prefill(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Dot<false>>(args);
}
