// attend, for many query rows, by products of float16 on tensor cores (docs/semantics.md, section 3).
#include "cuda/attend/mma/prefill.h"
#include "cuda/attend/prefill.h"
#include "cuda/shape.h"

namespace kvjit {

struct Mma {
    static constexpr LaunchShape kShape = mma_prefill_shape(kFormat, kMaxSharedBytes);
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_mma_prefill(work); }
};

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::Mma::kShape.threads, kvjit::Mma::kShape.blocks_per_sm)
kvjit_attend_prefill(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Mma>(args);
}
