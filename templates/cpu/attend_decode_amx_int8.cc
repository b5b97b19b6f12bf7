// attend for few query rows over a quantised cache (docs/semantics.md, section 3) by AMX's products of bytes: those of
// four queries' digits with 16 keys, or with 16 elements of 64 values, are one instruction.
#include "cpu/attend/byte_tiles.h"

namespace kvjit {

// ---- 4. Per key chunk ----------------------------------------------------------------------------------------------

using Products = ByteProducts<TileSums>;

}  // namespace kvjit

#include "cpu/attend/decode_panel.h"

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_attend_decode(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
