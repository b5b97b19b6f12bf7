// attend for few query rows over a bfloat16 cache (docs/semantics.md, section 3) by AMX's products. Reading keys and
// values bounds it.
#include "cpu/attend/pair_tiles.h"

namespace kvjit {

// ---- 4. Per key chunk ----------------------------------------------------------------------------------------------

using Products = PairProducts;

}  // namespace kvjit

#include "cpu/attend/decode_panel.h"

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_attend_decode(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
