// attend, for few query rows, by products of float16 on tensor cores (docs/semantics.md, section 3).
#include "cuda/attend/decode.h"
#include "cuda/attend/mma/decode.h"
#include "cuda/shape.h"

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
