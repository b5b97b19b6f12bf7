// attend for few query rows over a quantised cache (docs/semantics.md, section 3) by AVX512-VNNI's products of bytes,
// which make four of them where floats make one.
#include "cpu/attend/byte_vectors.h"

namespace kvjit {

// ---- 4. Per key chunk ----------------------------------------------------------------------------------------------

using Products = ByteProducts<VectorSums>;

}  // namespace kvjit

#include "cpu/attend/decode_panel.h"

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_attend_decode(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
