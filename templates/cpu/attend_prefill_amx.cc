// attend for many query rows (docs/semantics.md, section 3) by AMX's products of bfloat16. Products take little of the
// time: each block of keys and values is packed once for all rows of a panel, and softmax is kept short.
#include "cpu/attend/tile_values.h"

#include "cpu/attend/tile_panel.h"

extern "C" void kvjit_attend_prefill(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
