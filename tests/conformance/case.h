// A case: one choice for everything that a call can vary, small enough to be enumerated. make_call turns it into
// memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/placed.h"
#include "kvjit/kvjit.h"

namespace kvjit::test {

/// How a table's rows are found.
enum class TableRows { kPadded, kCsr, kIndexed };
/// New tokens of a sequence.
// kTwoOrThree: of groups of up to 4, which every CPU decodes where AMX doesn't make prefill cheaper.
enum class NewTokens { kOne, kNoneOrOne, kTwoOrThree, kFew, kTileEdge, kRagged };
/// Tokens before the new ones; for MultiHeadAttention: keys.
enum class PastTokens { kNone, kFew, kVectorEdge, kChunkEdge, kChunks, kRagged };
/// Whether a call stores: its run brings new tokens, or none; or its plan says that none ever will.
enum class Stores { kYes, kNotThisRun, kNever };
/// Which array says how many keys the sequences have.
enum class KeysBy { kStarts, kLens, kLastPage };
/// Who says where new tokens go: the table; or slots that the caller chose, the same for all layers, or a layer's own.
enum class SlotsBy { kTable, kChosen, kChosenByLayer };
/// How much of a batch is given: all, or neither start_pos nor one of the numbers of heads, which follow from the rest.
enum class Given { kAll, kHeads, kKvHeads };
/// Who runs a plan's tasks, and in which order.
enum class Order { kPool, kSerial, kReversed, kShuffled };

struct Case {
    kvjit_spec spec;
    std::int64_t num_kv_heads = 1;
    std::int64_t num_layers = 1;
    std::int64_t batch_size = 1;
    NewTokens new_tokens = NewTokens::kOne;
    PastTokens past_tokens = PastTokens::kFew;
    TableRows rows = TableRows::kPadded;
    KeysBy keys_by = KeysBy::kStarts;
    SlotsBy slots_by = SlotsBy::kTable;
    bool layer_tables = false;  // a table a layer
    int decoding = 0;           // decoding_batches: 0 none, 1 some, 2 all
    bool own_scale = false;
    bool own_slopes = false;
    std::int64_t window_left = -1, window_right = -1;
    float soft_cap = 1.5F;  // where the spec has one
    std::int64_t num_repeat = 1;
    Given given = Given::kAll;
    bool bounds_known = true;   // max_seqlen and max_kvlen are given
    bool outputs_whole = true;  // false: lse, or one of key and value, is not asked for
    Stores stores = Stores::kYes;
    Guard guard = Guard::kAfter;
    Spread spread = Spread::kDense;
    std::uint32_t threads = 1;
    Order order = Order::kPool;
    int check_level = KVJIT_CHECK_FULL;
};

/// The factors of a case and how many levels each has. A level vector is a case's coordinates.
struct Factor {
    std::string_view name;
    int levels;
};
inline constexpr int kIrrelevant = -1;
using Levels = std::vector<int>;

const std::vector<Factor>& factors();

/// Makes `levels` consistent: where a choice is illegal beside the others it becomes a legal one, and where it means
/// nothing, kIrrelevant. Idempotent.
void normalise(Levels& levels);

/// `levels` must be normalised.
Case case_of(const Levels& levels);

}  // namespace kvjit::test
