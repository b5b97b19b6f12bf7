// attend, for few query rows, by dot products in float32 (docs/semantics.md, section 3).
#include "cuda/attend/decode.h"
#include "cuda/attend/dot/tiles.h"
#include "cuda/shape.h"

namespace kvjit {

struct Dot {
    static constexpr LaunchShape kShape = dot_shape(true, kFormat);
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_dot<true>(work); }
};

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::Dot::kShape.threads, kvjit::Dot::kShape.blocks_per_sm)
kvjit_attend_decode(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Dot>(args);
}
