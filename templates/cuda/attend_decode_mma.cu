// attend, for few query rows, by products of float16 on tensor cores (docs/semantics.md, section 3).
#include "common/shape.h"
#include "cuda/attend_decode.h"
#include "cuda/attend_mma_decode.h"

namespace kvjit {

struct Mma {
    static constexpr LaunchShape kShape = mma_decode_shape(kFormat, kMaxSharedBytes);
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_mma_decode(work); }
};

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::Mma::kShape.threads, kvjit::Mma::kShape.blocks_per_sm)
kvjit_attend_decode(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Mma>(args);
}
