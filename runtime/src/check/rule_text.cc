#include "check/rule_text.h"

#include <string>

#include "check/arithmetic.h"
#include "check/fault.h"
#include "common/indices.h"

namespace kvjit::rt {
namespace {

using abi::Finding;
using abi::Rule;

/// Placeholders of a sentence, from the finding: %i index (or row, index), %v value, %l limit, %s sequence, %d detail;
/// %t limit and detail together, %e the last of `detail` from `value` on; %a the argument, %p the spec's page_size, %u
/// that the rule binds only plans that may store; %f what a page table holds, where the spec has one; %A the value as
/// an address.
struct RuleText {
    Rule rule;
    kvjit_status status;
    std::string_view argument;
    std::string_view sentence;
    std::string_view level;  // the check levels that look there
};

/// Placeholder of the argument that gives the counts of keys.
constexpr std::string_view kKeys = "";
/// Placeholder of the argument that gives the cache's size, which the batch left out: 0.
constexpr std::string_view kSize = "max_tokens or num_blocks";
/// Placeholders of the extent of the last axis, which an axis L may precede.
constexpr std::string_view kTableShape = "cachestarts.shape", kSlotShape = "store_slots.shape";

constexpr std::string_view kBelow0 = "%a[%i] is %v; it takes at least 0 (sequence %s)";
constexpr std::string_view kBytes = "%a[%i] is %v; its bytes have to fit 64 bits, so it takes at most %l (sequence %s)";
constexpr std::string_view kRoom = "%a is %v; the batch has %d keys, so it takes at least 1";
constexpr std::string_view kBegins = "%a[%i] is %v; starts begin at 0 (sequence %s)";
constexpr std::string_view kFalls = "%a[%i] is %v; starts may not fall, %a[%s] is %l (sequence %s)";

constexpr std::string_view kFirstSlots =
    "; entries of a page_table are the first slots of pages, entries of a block_table are numbers of blocks";

constexpr std::string_view kNoAddress = "%a[%i] is %v; it takes the address of a block, a multiple of %l (sequence %s)";
constexpr std::string_view kUnaligned = "%a[%i] is %A; blocks begin at multiples of %l bytes (sequence %s)";
constexpr std::string_view kSharedAddress =
    "%a sends two new tokens, of sequences %d and %s, to token %i of the block at %A; each takes one of its own%u";
constexpr std::string_view kOverlap =
    "%a sends new tokens of sequences %d and %s to blocks of %l bytes that overlap, one of them at %A%u";

constexpr RuleText kTexts[] = {
    {Rule::kNewTokens, KVJIT_BAD_INDEX, "seqstarts", "%a[%i] is %v; a call has at most %l new tokens (sequence %s)",
     ""},
    {Rule::kTokensBelow0, KVJIT_BAD_INDEX, "seqstarts", kBelow0, ""},
    {Rule::kTokensBytes, KVJIT_BAD_INDEX, "seqstarts", kBytes, ""},
    {Rule::kKeysBelow0, KVJIT_BAD_INDEX, "kvstarts", kBelow0, ""},
    {Rule::kKeysBytes, KVJIT_BAD_INDEX, "kvstarts", kBytes, ""},
    {Rule::kTableKeys, KVJIT_BAD_SHAPE, kTableShape, "%a is %v; axis K takes at least %l", ""},
    {Rule::kSlotRows, KVJIT_BAD_SHAPE, kSlotShape, "%a is %v; axis S takes at least %l%u", ""},
    {Rule::kNoTokens, KVJIT_BAD_ARGUMENT, "max_tokens", kRoom, ""},
    {Rule::kNoBlocks, KVJIT_BAD_ARGUMENT, "num_blocks", kRoom, ""},
    {Rule::kSeqstartsBegin, KVJIT_BAD_INDEX, "seqstarts", kBegins, kAtCheckBatch},
    {Rule::kSeqstartsFall, KVJIT_BAD_INDEX, "seqstarts", kFalls, kAtCheckBatch},
    {Rule::kMaxSeqlen, KVJIT_BAD_ARGUMENT, "max_seqlen", "%a is %v; sequence %s has %l new tokens", kAtCheckBatch},
    {Rule::kKvstartsBegin, KVJIT_BAD_INDEX, "kvstarts", kBegins, kAtCheckBatch},
    {Rule::kKvstartsFall, KVJIT_BAD_INDEX, "kvstarts", kFalls, kAtCheckBatch},
    {Rule::kSequenceKeys, KVJIT_BAD_INDEX, kKeys,
     "%a[%i] is %v; it takes at most %l, a sequence has at most 1073741824 keys (sequence %s)", kAtCheckBatch},
    {Rule::kKvlensBelow0, KVJIT_BAD_INDEX, "kvlens", kBelow0, kAtCheckBatch},
    {Rule::kLastPage, KVJIT_BAD_INDEX, "last_page_len",
     "%a[%i] is %v; the last page of a sequence has 1 to page_size keys, %l (sequence %s)", kAtCheckBatch},
    {Rule::kSequencePages, KVJIT_BAD_INDEX, "rowstarts",
     "%a[%i] is %v; it takes at most %l, a sequence has at most 1073741824 keys in pages of %p (sequence %s)",
     kAtCheckBatch},
    {Rule::kMaxKvlen, KVJIT_BAD_ARGUMENT, "max_kvlen", "%a is %v; sequence %s has %l keys", kAtCheckBatch},
    {Rule::kNewKeys, KVJIT_BAD_INDEX, kKeys,
     "%a[%i] is %v; with %d new tokens, which are keys too, it takes at least %l%u (sequence %s)", kAtCheckBatch},
    {Rule::kNewPageKeys, KVJIT_BAD_INDEX, "last_page_len",
     "rowstarts and %a give sequence %s %v keys; its new tokens are keys too, so it takes at least %l%u",
     kAtCheckBatch},
    {Rule::kStartBelow0, KVJIT_BAD_INDEX, "start_pos", "%a[%i] is %v; it takes at least 0%u (sequence %s)",
     kAtCheckBatch},
    {Rule::kStart, KVJIT_BAD_INDEX, "start_pos",
     "%a[%i] is %v; with %t keys, %d of them new, it takes %l%u (sequence %s)", kAtCheckBatch},
    {Rule::kRowstartsBegin, KVJIT_BAD_INDEX, "rowstarts", kBegins, kAtCheckBatch},
    {Rule::kRowstartsFall, KVJIT_BAD_INDEX, "rowstarts", kFalls, kAtCheckBatch},
    {Rule::kRowstartsEnd, KVJIT_BAD_INDEX, "rowstarts", "%a[%i] is %v; cachestarts has %l entries (sequence %s)",
     kAtCheckBatch},
    {Rule::kRowIndex, KVJIT_BAD_INDEX, "row_index", "%a[%i] is %v; cachestarts has %l rows (sequence %s)",
     kAtCheckBatch},
    {Rule::kRowLength, KVJIT_BAD_INDEX, kKeys,
     "%a gives sequence %s %v keys; its row of cachestarts has %d pages of %p tokens, room for %l", kAtCheckBatch},
    {Rule::kNoRoom, KVJIT_BAD_ARGUMENT, kSize, "%a is 0; sequence %s has %v keys, so it takes at least 1",
     kAtCheckBatch},
    {Rule::kBlock, KVJIT_BAD_INDEX, "cachestarts", "%a[%i] is %v; num_blocks is %l (sequence %s)", kAtCheckFull},
    {Rule::kSlotBelow0, KVJIT_BAD_INDEX, "cachestarts",
     "%a[%i] is %v; slots count from 0, max_tokens is %l (sequence %s)", kAtCheckFull},
    {Rule::kSlotEnd, KVJIT_BAD_INDEX, "cachestarts",
     "%a[%i] is %v; its %d tokens reach slot %e, max_tokens is %l (sequence %s)", kAtCheckFull},
    {Rule::kSharedSlot, KVJIT_BAD_INDEX, "cachestarts",
     "%a sends two new tokens, of sequences %d and %s, to slot %v; each takes one of its own%u%f", kAtCheckFull},
    {Rule::kSharedBlock, KVJIT_BAD_INDEX, "cachestarts",
     "%a sends two new tokens, of sequences %d and %s, to token %i of block %v; each takes one of its own%u",
     kAtCheckFull},
    {Rule::kNoAddress, KVJIT_BAD_INDEX, "cachestarts", kNoAddress, kAtCheckFull},
    {Rule::kAddressAlignment, KVJIT_BAD_INDEX, "cachestarts", kUnaligned, kAtCheckFull},
    {Rule::kSharedAddress, KVJIT_BAD_INDEX, "cachestarts", kSharedAddress, kAtCheckFull},
    {Rule::kOverlappingBlocks, KVJIT_BAD_INDEX, "cachestarts", kOverlap, kAtCheckFull},
    {Rule::kNoScaleAddress, KVJIT_BAD_INDEX, "scalestarts", kNoAddress, kAtCheckFull},
    {Rule::kScaleAddressAlignment, KVJIT_BAD_INDEX, "scalestarts", kUnaligned, kAtCheckFull},
    {Rule::kSharedScaleAddress, KVJIT_BAD_INDEX, "scalestarts", kSharedAddress, kAtCheckFull},
    {Rule::kOverlappingScaleBlocks, KVJIT_BAD_INDEX, "scalestarts", kOverlap, kAtCheckFull},
    {Rule::kBlockTokens, KVJIT_BAD_INDEX, kKeys, "%a gives sequence %s %v keys; its block has max_tokens tokens, %l",
     kAtCheckBatch},
    {Rule::kStoreSlot, KVJIT_BAD_INDEX, "store_slots", "%a[%i] is %v; the cache has %l slots (sequence %s)",
     kAtCheckFull},
    {Rule::kSharedStoreSlot, KVJIT_BAD_INDEX, "store_slots",
     "%a sends two new tokens, of sequences %d and %s, to slot %v; each takes one of its own%u", kAtCheckFull},
    {Rule::kQueryRows, KVJIT_BAD_SHAPE, "seqstarts",
     "%a[%i] is %v; tensors of the query side have %l rows (sequence %s)", kAtCheckBatch},
    {Rule::kKeyRows, KVJIT_BAD_SHAPE, "kvstarts", "%a[%i] is %v; key, value or mask have %l rows (sequence %s)",
     kAtCheckBatch},
};

constexpr bool in_order_of_rules() {
    for (std::size_t i = 0; i < std::size(kTexts); ++i) {
        if (static_cast<std::size_t>(kTexts[i].rule) != i + 1) return false;
    }
    return true;
}
static_assert(in_order_of_rules());

std::string argument_of(const RuleText& rule, const RuleWords& words) {
    if (rule.argument == kKeys) return std::string(words.keys);
    if (rule.argument == kSize) return gen::has_num_blocks(words.spec) ? "num_blocks" : "max_tokens";
    if (rule.argument == kTableShape) return text(kTableShape, words.layer_tables ? "[1]" : "[0]");
    if (rule.argument == kSlotShape) return text(kSlotShape, words.layer_slots ? "[1]" : "[0]");
    return std::string(rule.argument);
}

/// The text for the letter after a %.
std::string meaning(char letter, const RuleText& rule, const Finding& found, const RuleWords& words) {
    switch (letter) {
        case 'a':
            return argument_of(rule, words);
        case 'i':
            return found.row < 0 ? text(found.index) : text(found.row, ", ", found.index);
        case 'v':
            return text(found.value);
        case 'l':
            return text(found.limit);
        case 'A':
            return address_text(found.value);
        case 's':
            return text(found.sequence);
        case 'd':
            return text(found.detail);
        case 't':
            return text(found.limit + found.detail);
        case 'e':
            return text(saturating_sum(found.value, found.detail - 1));
        case 'p':
            return text(words.spec.page_size);
        case 'f':
            return words.spec.cache_mode == KVJIT_PAGE_TABLE && words.spec.page_size > 1 ? std::string(kFirstSlots)
                                                                                         : "";
        default:
            return std::string(kIfStored);
    }
}

std::string sentence(const RuleText& rule, const Finding& found, const RuleWords& words) {
    std::string filled;
    for (std::size_t i = 0; i < rule.sentence.size(); ++i) {
        const char c = rule.sentence[i];
        filled += c == '%' ? meaning(rule.sentence[++i], rule, found, words) : std::string(1, c);
    }
    return filled;
}

std::string layer_text(std::int64_t layer) {
    return layer < 0 ? "" : text(" (layer ", layer, ")");
}

std::string_view keys_name(const abi::KeyCounts& keys) {
    if (is_given(keys.counts)) return "kvlens";
    return is_given(keys.last) ? "last_page_len" : "kvstarts";
}

}  // namespace

RuleWords rule_words(const BatchView& batch) {
    return {batch.spec, keys_name(batch.keys), batch.cache.has_layers(), batch.store_slots.has_layers};
}

gen::Error rule_error(const Finding& found, const RuleWords& words, std::string_view remark) {
    const RuleText& rule = kTexts[static_cast<std::size_t>(found.rule) - 1];
    const bool lacks_size = rule.argument == kSize;  // then the finding has the keys that found no room
    return {rule.status,
            text(sentence(rule, found, words), layer_text(words.layer), remark, rule.level),
            argument_of(rule, words),
            lacks_size ? 0 : found.value,
            lacks_size ? 1 : found.limit,
            found.sequence};
}

}  // namespace kvjit::rt
