// attend for few query rows over a bfloat16 cache (docs/semantics.md, section 3) by AMX's products: a tile takes 16
// rows for the price of one. Reading keys and values bounds it.
#include "cpu/attend/tile_pairs.h"

#include "cpu/attend/tile_panel.h"

extern "C" void kvjit_attend_decode(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
