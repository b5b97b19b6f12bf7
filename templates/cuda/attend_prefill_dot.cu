// attend, for many query rows, by dot products in float32 (docs/semantics.md, section 3).
#include "cuda/attend/dot/tiles.h"
#include "cuda/attend/prefill.h"
#include "cuda/shape.h"

namespace kvjit {

struct Dot {
    static constexpr LaunchShape kShape = dot_shape(false, kFormat);
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_dot<false>(work); }
};

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::Dot::kShape.threads, kvjit::Dot::kShape.blocks_per_sm)
kvjit_attend_prefill(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Dot>(args);
}
