#include "conformance/case.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "conformance/options.h"

namespace kvjit::test {
namespace {

enum FactorId {
    kOp,
    kT1,
    kT2,
    kT3,
    kQuantBit,
    kQuantGroup,
    kHeadDim,
    kGroup,
    kKvHeads,
    kMode,
    kLayout,
    kApart,
    kCut,
    kPageSize,
    kIndexType,
    kStartsType,
    kGiven,
    kCausal,
    kAlibi,
    kWindow,
    kSoftCap,
    kSinks,
    kMask,
    kRows,
    kKeysBy,
    kSlotsBy,
    kLayerTables,
    kNewTokens,
    kPastTokens,
    kDecoding,
    kOwnScale,
    kOwnSlopes,
    kRepeat,
    kLayers,
    kBatch,
    kBounds,
    kOutputs,
    kStores,
    kGuard,
    kSpread,
    kThreads,
    kOrder,
    kCheckLevel,
    kFactorCount
};

constexpr std::array kOps = {KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION, KVJIT_OP_KEY_VALUE_CACHE,
                             KVJIT_OP_MULTI_HEAD_ATTENTION};
constexpr std::array kTypes = {KVJIT_F32, KVJIT_F16, KVJIT_I8, KVJIT_BF16};
constexpr std::array kScaleTypes = {KVJIT_AUTO, KVJIT_F32, KVJIT_F16, KVJIT_BF16};
constexpr std::array kQuantBits = {0, 8, 4};
constexpr int kMaxCudaHeadDim = 256;  // as the library says that it has, and tests of targets hold it to
constexpr std::array kQuantGroups = {0, 4, 8, 16, 32, 64};  // 0: head_dim
constexpr std::array kHeadDims = {64, 8, 16, 24, 32, 40, 80, 96, 128, 256};
constexpr std::array kGroups = {1, 2, 3, 4, 7, 8, 48, 71};
constexpr std::array kKvHeadCounts = {1, 2, 3};
constexpr std::array kModes = {KVJIT_OFFSET,      KVJIT_TOKEN_TABLE,    KVJIT_PAGE_TABLE,
                               KVJIT_BLOCK_TABLE, KVJIT_BLOCK_POINTERS, KVJIT_SEQUENCE_TABLE};
constexpr std::array kPageSizes = {16, 1, 7, 128};
constexpr std::array kBatches = {3, 1, 5};
struct Window {
    std::int64_t left, right;
};
/// The first is none; then what is narrower and wider than vectors, tiles and chunks.
constexpr std::array kWindows = {Window{-1, -1}, Window{5, -1},    Window{0, 0},   Window{100, 2},
                                 Window{-1, 3},  Window{511, 700}, Window{64, -1}, Window{600, 0}};
/// The first is none; then what bends scores of ordinary size, a model's, and one so large that it changes nothing.
constexpr std::array kSoftCaps = {0.0F, 1.5F, 50.0F, 1e6F};
/// What a layout cuts: nothing; rows into pieces, of 8 elements or of one; or pages into pieces of tokens.
enum class CutBy { kNothing, kPieces, kElements, kTokens };
constexpr std::array kCuts = {CutBy::kNothing, CutBy::kPieces, CutBy::kElements, CutBy::kTokens};
constexpr std::array kCheckLevels = {KVJIT_CHECK_FULL, KVJIT_CHECK_BATCH, KVJIT_CHECK_NONE};

/// Every order of T, L, 2, H with D last, then those without L.
const std::vector<std::string>& token_layouts() {
    static const std::vector<std::string> layouts = [] {
        std::vector<std::string> all;
        for (std::string axes : {"2HLT", "2HT"}) {
            do all.push_back(axes + "D");
            while (std::ranges::next_permutation(axes).found);
        }
        return all;
    }();
    return layouts;
}

const std::vector<std::string>& block_layouts() {
    static const std::vector<std::string> layouts = {"N2LTHD", "2NTHD",  "N2THD",  "N2HTD",
                                                     "L2NTHD", "NLT2HD", "2LNHTD", "HN2TD"};
    return layouts;
}

bool has_numbered_blocks(const Levels& levels) {
    return kModes[levels[kMode]] == KVJIT_BLOCK_TABLE || kModes[levels[kMode]] == KVJIT_SEQUENCE_TABLE;
}

const std::string& layout_of(const Levels& levels) {
    const auto& layouts = has_numbered_blocks(levels) ? block_layouts() : token_layouts();
    return layouts[static_cast<std::size_t>(levels[kLayout]) % layouts.size()];
}

/// Of keys alone: the same order without axis 2. Values have it, too, or that of the axes before D turned round.
std::string without_parts(std::string axes) {
    std::erase(axes, '2');
    return axes;
}
std::string turned_round(std::string axes) {
    std::ranges::reverse(axes.begin(), axes.end() - 1);
    return axes;
}

/// D goes in front of T, whole or with its pieces last; T has pieces in front of D, of 4 tokens where that is possible.
std::string cut(std::string axes, CutBy by, std::int64_t page_size) {
    if (by == CutBy::kNothing) return axes;
    axes.pop_back();
    if (by == CutBy::kTokens) return axes + "t" + std::to_string(page_size % 4 == 0 ? 4 : page_size) + "D";
    axes.insert(axes.find('T'), "D");
    return by == CutBy::kPieces ? axes + "d8" : axes;
}

template <class Choices>
int count(const Choices& choices) {
    return static_cast<int>(choices.size());
}

void forget(Levels& levels, std::initializer_list<FactorId> ids) {
    for (const FactorId id : ids) levels[id] = kIrrelevant;
}

/// Quantised: codes are int8 or int4 whatever t2 says. Not quantised: scales mean nothing.
void normalise_types(Levels& levels) {
    const auto op = kOps[levels[kOp]];
    if (kTypes[levels[kT1]] == KVJIT_I8) {
        if (op != KVJIT_OP_KEY_VALUE_CACHE)
            levels[kT1] = 1;
        else
            levels[kQuantBit] = levels[kT2] = 0;
    }
    if (op == KVJIT_OP_MULTI_HEAD_ATTENTION) return forget(levels, {kT2, kT3, kQuantBit, kQuantGroup});
    if (kQuantBits[levels[kQuantBit]] == 0) return forget(levels, {kT3, kQuantGroup});
    levels[kT2] = kIrrelevant;
    const int group = kQuantGroups[levels[kQuantGroup]];
    if (group != 0 && kHeadDims[levels[kHeadDim]] % group != 0) levels[kQuantGroup] = 0;
}

void normalise_cache(Levels& levels) {
    if (kOps[levels[kOp]] == KVJIT_OP_MULTI_HEAD_ATTENTION) {
        return forget(levels, {kMode, kLayout, kApart, kCut, kPageSize, kIndexType, kRows, kKeysBy, kSlotsBy,
                               kLayerTables, kLayers, kStores});
    }
    const auto mode = kModes[levels[kMode]];
    if (kOps[levels[kOp]] != KVJIT_OP_KEY_VALUE_CACHE || kQuantBits[levels[kQuantBit]] != 0) levels[kCut] = kIrrelevant;
    const bool blocks = mode == KVJIT_BLOCK_TABLE || mode == KVJIT_BLOCK_POINTERS;
    if (levels[kCut] > 0 && kCuts[levels[kCut]] == CutBy::kTokens && !blocks) --levels[kCut];
    if (has_numbered_blocks(levels)) levels[kLayout] %= count(block_layouts());
    if (mode == KVJIT_OFFSET || mode == KVJIT_TOKEN_TABLE || mode == KVJIT_SEQUENCE_TABLE)
        forget(levels, {kPageSize, kRows});
    if (mode == KVJIT_BLOCK_POINTERS) {
        forget(levels, {kApart, kIndexType});
        // Blocks are allocations of their own, each between guard pages: there are not as many as tokens.
        if (kPageSizes[levels[kPageSize]] == 1) ++levels[kPageSize];
    }
    if (mode == KVJIT_TOKEN_TABLE || levels[kMask] > 0) levels[kKeysBy] = 0;
    if (levels[kKeysBy] == 2) levels[kRows] < 0 ? levels[kKeysBy] = 1 : levels[kRows] = 1;
    if (mode == KVJIT_BLOCK_POINTERS || levels[kStores] != 0) levels[kSlotsBy] = 0;
    if (layout_of(levels).find('L') == std::string::npos && levels[kLayerTables] == 0) levels[kLayers] = 0;
}

void normalise_attention(Levels& levels) {
    if (kOps[levels[kOp]] == KVJIT_OP_KEY_VALUE_CACHE) {
        return forget(levels,
                      {kGroup, kCausal, kAlibi, kWindow, kSoftCap, kSinks, kMask, kDecoding, kOwnScale, kOwnSlopes});
    }
    levels[kRepeat] = kIrrelevant;
    if (levels[kAlibi] == 0) levels[kOwnSlopes] = kIrrelevant;
}

int level(const Levels& levels, FactorId id) {
    return std::max(levels[id], 0);
}

void fill_spec(const Levels& levels, kvjit_spec& spec) {
    kvjit_spec_init(&spec);
    spec.op = kOps[level(levels, kOp)];
    spec.head_dim = kHeadDims[level(levels, kHeadDim)];
    if (options().on_cuda()) spec.head_dim = std::min(spec.head_dim, kMaxCudaHeadDim);
    spec.group = kGroups[level(levels, kGroup)];
    spec.t1 = kTypes[level(levels, kT1)];
    if (level(levels, kT2) == 1) spec.t2 = spec.t1 == KVJIT_F32 ? KVJIT_F16 : KVJIT_F32;
    if (level(levels, kT2) == 2) spec.t2 = spec.t1;
    if (level(levels, kT2) == 3) spec.t2 = spec.t1 == KVJIT_BF16 ? KVJIT_F16 : KVJIT_BF16;
    spec.quant_bit = kQuantBits[level(levels, kQuantBit)];
    if (spec.quant_bit != 0) spec.t3 = kScaleTypes[level(levels, kT3)];
    const int group = kQuantGroups[level(levels, kQuantGroup)];
    if (spec.quant_bit != 0) spec.quant_group = group == 0 ? spec.head_dim : group;
    spec.starts_type = level(levels, kStartsType) == 0 ? KVJIT_I64 : KVJIT_I32;
    spec.is_causal = level(levels, kCausal);
    spec.is_alibi = level(levels, kAlibi);
    spec.has_window = level(levels, kWindow) != 0;
    spec.has_soft_cap = level(levels, kSoftCap) != 0;
    spec.has_sinks = level(levels, kSinks);
    spec.attn_mask = std::array{0, 2, 3}[level(levels, kMask)];
    if (spec.op != KVJIT_OP_MULTI_HEAD_ATTENTION) {
        spec.cache_mode = kModes[level(levels, kMode)];
        spec.page_size = kPageSizes[level(levels, kPageSize)];
        spec.index_type = level(levels, kIndexType) == 0 ? KVJIT_I64 : KVJIT_I32;
        std::memset(spec.layout, 0, sizeof spec.layout);
        const int apart = level(levels, kApart);
        const std::string layout = apart == 0 ? layout_of(levels) : without_parts(layout_of(levels));
        const auto by = kCuts[static_cast<std::size_t>(level(levels, kCut))];
        // Values in the other pieces.
        const auto by_value = by == CutBy::kPieces ? CutBy::kElements : by == CutBy::kElements ? CutBy::kPieces : by;
        std::ranges::copy(cut(layout, by, spec.page_size), spec.layout);
        if (apart == 2) std::ranges::copy(cut(turned_round(layout), by_value, spec.page_size), spec.value_layout);
    }
    const kvjit_status status = kvjit_spec_for_op(&spec, static_cast<kvjit_op>(spec.op), &spec, nullptr);
    if (status != KVJIT_OK) throw std::logic_error("the sweep made a spec that is none");
}

}  // namespace

const std::vector<Factor>& factors() {
    static const std::vector<Factor> all = [] {
        struct Row {
            FactorId id;
            std::string_view name;
            int levels;
        };
        std::vector<Factor> made(kFactorCount);
        for (const auto& [id, name, levels] :
             std::initializer_list<Row>{{kOp, "op", count(kOps)},
                                        {kT1, "t1", count(kTypes)},
                                        {kT2, "t2", 4},
                                        {kT3, "t3", count(kScaleTypes)},
                                        {kQuantBit, "quant_bit", count(kQuantBits)},
                                        {kQuantGroup, "quant_group", count(kQuantGroups)},
                                        {kHeadDim, "head_dim", count(kHeadDims)},
                                        {kGroup, "group", count(kGroups)},
                                        {kKvHeads, "kv_heads", count(kKvHeadCounts)},
                                        {kMode, "cache_mode", count(kModes)},
                                        {kLayout, "layout", count(token_layouts())},
                                        {kApart, "apart", 3},
                                        {kCut, "cut", count(kCuts)},
                                        {kPageSize, "page_size", count(kPageSizes)},
                                        {kIndexType, "index_type", 2},
                                        {kStartsType, "starts_type", 2},
                                        {kGiven, "given", 3},
                                        {kCausal, "is_causal", 2},
                                        {kAlibi, "is_alibi", 2},
                                        {kWindow, "window", count(kWindows)},
                                        {kSoftCap, "soft_cap", count(kSoftCaps)},
                                        {kSinks, "sinks", 2},
                                        {kMask, "attn_mask", 3},
                                        {kRows, "rows", 3},
                                        {kKeysBy, "keys_by", 3},
                                        {kSlotsBy, "slots_by", 3},
                                        {kLayerTables, "layer_tables", 2},
                                        {kNewTokens, "new_tokens", 5},
                                        {kPastTokens, "past_tokens", 6},
                                        {kDecoding, "decoding", 3},
                                        {kOwnScale, "own_scale", 2},
                                        {kOwnSlopes, "own_slopes", 2},
                                        {kRepeat, "num_repeat", 2},
                                        {kLayers, "layers", 2},
                                        {kBatch, "batch", count(kBatches)},
                                        {kBounds, "bounds", 2},
                                        {kOutputs, "outputs", 2},
                                        {kStores, "stores", 3},
                                        {kGuard, "guard", 2},
                                        {kSpread, "spread", 3},
                                        {kThreads, "threads", 3},
                                        {kOrder, "order", 4},
                                        {kCheckLevel, "check_level", count(kCheckLevels)}}) {
            made[id] = {name, levels};
        }
        return made;
    }();
    return all;
}

void normalise(Levels& levels) {
    for (int& each : levels) each = std::max(each, 0);
    normalise_types(levels);
    normalise_attention(levels);
    normalise_cache(levels);
}

Case case_of(const Levels& levels) {
    Case made;
    fill_spec(levels, made.spec);
    made.num_kv_heads = kKvHeadCounts[level(levels, kKvHeads)];
    made.num_layers = level(levels, kLayers) == 0 ? 1 : 3;
    made.batch_size = kBatches[level(levels, kBatch)];
    made.new_tokens = static_cast<NewTokens>(level(levels, kNewTokens));
    made.past_tokens = static_cast<PastTokens>(level(levels, kPastTokens));
    made.rows = static_cast<TableRows>(level(levels, kRows));
    made.keys_by = static_cast<KeysBy>(level(levels, kKeysBy));
    made.slots_by = static_cast<SlotsBy>(level(levels, kSlotsBy));
    made.layer_tables = level(levels, kLayerTables) != 0;
    made.decoding = level(levels, kDecoding);
    made.own_scale = level(levels, kOwnScale) != 0;
    made.own_slopes = level(levels, kOwnSlopes) != 0;
    made.soft_cap = kSoftCaps[static_cast<std::size_t>(level(levels, kSoftCap))];
    made.window_left = kWindows[static_cast<std::size_t>(level(levels, kWindow))].left;
    made.window_right = kWindows[static_cast<std::size_t>(level(levels, kWindow))].right;
    made.num_repeat = level(levels, kRepeat) == 0 ? 1 : 3;
    made.given = static_cast<Given>(level(levels, kGiven));
    made.bounds_known = level(levels, kBounds) == 0;
    made.outputs_whole = level(levels, kOutputs) == 0;
    made.stores = static_cast<Stores>(level(levels, kStores));
    made.guard = static_cast<Guard>(level(levels, kGuard));
    made.spread = static_cast<Spread>(level(levels, kSpread));
    made.threads = static_cast<std::uint32_t>(level(levels, kThreads)) + 1;
    made.order = static_cast<Order>(level(levels, kOrder));
    made.check_level = kCheckLevels[level(levels, kCheckLevel)];
    return made;
}

}  // namespace kvjit::test
