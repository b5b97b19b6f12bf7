// attend for few query rows (docs/semantics.md, section 3). Reading keys and values bounds it: each is read once for
// 32 rows of a kv head.
#include "cpu/attend/decode_lanes.h"
#include "cpu/attend/decode_nibbles.h"

namespace kvjit {

// ---- 4. Per key chunk: the products that serve the spec -------------------------------------------------------------

template <bool kNibbles, bool kInLanes>
struct ProductsOf {
    using Type = FactorProducts<kLanes>;
};
template <>
struct ProductsOf<false, true> {
    using Type = LaneProducts<kLanes>;
};
template <bool kInLanes>
struct ProductsOf<true, kInLanes> {
    using Type = NibbleProducts<kLanes>;
};
using Products = ProductsOf<kNibblePairs, kLaneScores>::Type;

}  // namespace kvjit

#include "cpu/attend/decode_panel.h"

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_attend_decode(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
