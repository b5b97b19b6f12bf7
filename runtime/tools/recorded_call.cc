#include "recorded_call.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "available_memory.h"
#include "case_format.h"
#include "generator/score_rules.h"
#include "takers.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::array kFloatTypes = {Name{"f32", KVJIT_F32}, Name{"f16", KVJIT_F16}, Name{"bf16", KVJIT_BF16}};
constexpr std::array kCacheTypes = {Name{"f32", KVJIT_F32}, Name{"f16", KVJIT_F16}, Name{"bf16", KVJIT_BF16},
                                    Name{"i8", KVJIT_I8}, Name{"i4", KVJIT_U8}};
constexpr std::array kIndexTypes = {Name{"i64", KVJIT_I64}, Name{"i32", KVJIT_I32}};
constexpr std::array kCacheModes = {Name{"offset", KVJIT_OFFSET}, Name{"token_table", KVJIT_TOKEN_TABLE},
                                    Name{"page_table", KVJIT_PAGE_TABLE}, Name{"block_table", KVJIT_BLOCK_TABLE}};
constexpr std::array kOps = {Name{"MultiHeadCacheAttention", KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION}};
constexpr std::array kQuantBits = {Name{"0", 0}, Name{"8", 8}, Name{"4", 4}};
constexpr std::array kRevisions = {Name{"1", 1}, Name{"2", 2}};
constexpr std::array kMaskRanks = {Name{"0", 0}, Name{"2", 2}, Name{"3", 3}};

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

std::int32_t small(MetadataTaker& metadata, const char* name, std::int64_t low, std::int64_t high = kMaxInt32) {
    return static_cast<std::int32_t>(metadata.integer(name, low, high));
}

void read_layout(MetadataTaker& metadata, kvjit_spec& spec) {
    const std::string layout = metadata.text("layout_order");
    std::string axes = layout;
    std::ranges::sort(axes);
    const bool legal = std::ranges::adjacent_find(axes) == axes.end() && layout.ends_with('D') &&
                       axes.find_first_not_of("2DHLNT") == std::string::npos &&
                       std::ranges::all_of(std::string_view("2HT"), [&](char axis) { return axes.contains(axis); }) &&
                       axes.contains('N') == (spec.cache_mode == KVJIT_BLOCK_TABLE);
    if (!legal) {
        metadata.refuse_value("layout_order", layout,
                              "an order of the axes T, 2, H, perhaps L, with block_table also N, and D last");
        return;
    }
    std::memset(spec.layout, 0, sizeof spec.layout);
    std::memcpy(spec.layout, layout.data(), layout.size());
}

/// Whether a revision of PMX has a number for the layout.
bool is_numbered(std::string_view layout) {
    for (const char* number : {"r1:0", "r1:1", "r1:2", "r1:3", "r2:0", "r2:1", "r2:2", "r2:3"}) {
        kvjit_spec spec;
        const std::string text = std::string("layout=") + number;
        if (kvjit_spec_parse(text.c_str(), &spec, nullptr) == KVJIT_OK && spec.layout == layout) return true;
    }
    return false;
}

/// layout_order alone decides; PMX's number is for people and other tools. But if the layout has one, it must match.
void check_pmx_number(MetadataTaker& metadata, std::string_view layout) {
    const bool numbered = is_numbered(layout);
    const auto or_missing = [&](const char* meaning) {
        return numbered ? std::nullopt : std::optional<std::string>(meaning);
    };
    metadata.choice("pmx_revision", kRevisions, or_missing("2"));
    metadata.integer("cache_layout", 0, 3, or_missing("0"));
}

/// quant_group and t3 mean nothing without quantisation, page_size nothing without pages: the defaults stay then.
void read_cache_fields(MetadataTaker& metadata, kvjit_spec& spec) {
    const int t2 = metadata.choice("t2", kCacheTypes);
    const int t3 = metadata.choice("t3", kFloatTypes);
    spec.quant_bit = metadata.choice("quant_bit", kQuantBits);
    const std::int32_t quant_group = small(metadata, "quant_group", 1);
    const int expected = spec.quant_bit == 8 ? KVJIT_I8 : KVJIT_U8;
    if (spec.quant_bit == 0 ? t2 == KVJIT_I8 || t2 == KVJIT_U8 : t2 != expected) {
        metadata.refuse_value("t2", metadata.text("t2"),
                              "the type that quant_bit " + metadata.text("quant_bit") + " stores");
    }
    if (spec.quant_bit == 0) spec.t2 = t2;
    if (spec.quant_bit != 0) spec.t3 = t3;
    if (spec.quant_bit != 0) spec.quant_group = quant_group;
    spec.cache_mode = metadata.choice("cache_mode", kCacheModes);
    const std::int32_t page_size = small(metadata, "page_size", 1);
    if (spec.cache_mode == KVJIT_PAGE_TABLE || spec.cache_mode == KVJIT_BLOCK_TABLE) spec.page_size = page_size;
    read_layout(metadata, spec);
    check_pmx_number(metadata, spec.layout);
}

void read_head_counts(MetadataTaker& metadata, RecordedCall& call) {
    call.num_heads = metadata.integer("num_heads", 1, kMaxInt32);
    call.num_kv_heads = metadata.integer("num_kv_heads", 0, call.num_heads);
    if (call.num_kv_heads == 0) call.num_kv_heads = call.num_heads;
    if (call.num_heads % call.num_kv_heads != 0) {
        metadata.refuse_value("num_kv_heads", std::to_string(call.num_kv_heads),
                              "a divisor of num_heads " + std::to_string(call.num_heads));
    }
    call.spec.group = static_cast<std::int32_t>(call.num_heads / call.num_kv_heads);
}

/// A number that the file lacks has its default. A rule is present if one of its numbers differs from the default.
void read_score_rules(MetadataTaker& metadata, RecordedCall& call) {
    kvjit_batch_init(&call.score);
    call.score.softmax_scale = metadata.positive("softmax_scale");
    for (const gen::ScoreRule& rule : gen::kScoreRules) {
        gen::for_each_number(rule, [&](const auto& number) {
            const auto given = metadata.number(number.name, number.none, number.least, number.takes);
            call.score.*number.given = given;
            if (given != number.none) call.spec.*rule.member = 1;
        });
    }
}

Result<void> read_metadata(const SafetensorsFile& file, RecordedCall& call) {
    if (auto expected = expect_format(file, CaseFormat::kReference); !expected) return expected;
    MetadataTaker metadata(file);
    kvjit_spec& spec = call.spec;
    kvjit_spec_init(&spec);
    metadata.text("format", "");
    spec.op = metadata.choice("op", kOps);
    read_head_counts(metadata, call);
    spec.head_dim = small(metadata, "head_dim", 1);
    spec.t1 = metadata.choice("t1", kFloatTypes);
    spec.index_type = metadata.choice("index_type", kIndexTypes);
    read_cache_fields(metadata, spec);
    spec.is_causal = small(metadata, "is_causal", 0, 1);
    spec.is_alibi = small(metadata, "is_alibi", 0, 1);
    spec.attn_mask = metadata.choice("attn_mask", kMaskRanks);
    call.num_layers = metadata.integer("num_layer", 1, kMaxInt64);
    call.layer_idx = metadata.integer("layer_idx", 0, call.num_layers - 1);
    call.decoding_batches = metadata.integer("decoding_batches", 0, kMaxInt64);
    call.max_seqlen = metadata.integer("max_seqlen", 0, kMaxInt64);
    call.max_kvlen = metadata.integer("max_kvlen", 0, kMaxInt64);
    call.num_repeat = metadata.integer("num_repeat", 1, kMaxInt32, "1");
    read_score_rules(metadata, call);
    metadata.refuse_unknown("pmx_");
    if (!metadata.error().empty()) return fail(metadata.error());
    return {};
}

/// The shape of the cache, or of its scales, with `last` in place of axis D.
std::vector<std::int64_t> cache_shape(const RecordedCall& call, std::int64_t last) {
    const bool blocks = call.spec.cache_mode == KVJIT_BLOCK_TABLE;
    std::vector<std::int64_t> shape;
    for (const char axis : std::string_view(call.spec.layout)) {
        switch (axis) {
            case '2':
                shape.push_back(2);
                break;
            case 'L':
                shape.push_back(call.num_layers);
                break;
            case 'H':
                shape.push_back(call.num_kv_heads);
                break;
            case 'T':
                shape.push_back(blocks ? call.spec.page_size : kAny);
                break;
            case 'D':
                shape.push_back(last);
                break;
            default:
                shape.push_back(kAny);
                break;
        }
    }
    return shape;
}

std::vector<std::int64_t> table_shape(const RecordedCall& call, std::int64_t kv_tokens) {
    switch (call.spec.cache_mode) {
        case KVJIT_OFFSET:
            return {call.batch_size()};
        case KVJIT_TOKEN_TABLE:
            return {kv_tokens};
        default:
            return {call.batch_size(), kAny};
    }
}

void take_cache(TensorTaker& tensors, RecordedCall& call) {
    const kvjit_spec& spec = call.spec;
    const auto type = static_cast<kvjit_dtype>(spec.quant_bit == 8   ? KVJIT_I8
                                               : spec.quant_bit == 4 ? KVJIT_U8
                                                                     : spec.t2);
    const auto shape = cache_shape(call, spec.quant_bit == 4 ? spec.head_dim / 2 : spec.head_dim);
    tensors.take(call.cache, "cache", type, shape);
    auto scale_shape = tensors.shape("cache");
    tensors.take(call.out_cache, "out.cache", type, scale_shape);
    if (spec.quant_bit == 0) return;
    if (!scale_shape.empty()) scale_shape.back() = spec.head_dim / spec.quant_group;
    tensors.take(call.scale, "scale", static_cast<kvjit_dtype>(spec.t3), scale_shape);
    tensors.take(call.out_scale, "out.scale", static_cast<kvjit_dtype>(spec.t3), scale_shape);
}

Result<void> read_tensors(const SafetensorsFile& file, RecordedCall& call) {
    TensorTaker tensors(file);
    call.seqstarts = tensors.indices("seqstarts", kAny);
    const auto starts = static_cast<std::int64_t>(call.seqstarts.size());
    const std::int64_t new_tokens = tensors.total("seqstarts", call.seqstarts);
    call.kvstarts = tensors.indices("kvstarts", starts);
    const std::int64_t kv_tokens = tensors.total("kvstarts", call.kvstarts);
    call.start_pos = tensors.indices("start_pos", std::max<std::int64_t>(starts - 1, 0));

    const std::int64_t width = call.spec.head_dim;
    tensors.take(call.query, "query", call.t1(), {new_tokens, call.num_heads, width});
    tensors.take(call.current_key, "current_key", call.t1(), {new_tokens, call.num_kv_heads, width});
    tensors.take(call.current_value, "current_value", call.t1(), {new_tokens, call.num_kv_heads, width});
    tensors.take(call.cachestarts, "cachestarts", static_cast<kvjit_dtype>(call.spec.index_type),
                 table_shape(call, kv_tokens));
    take_cache(tensors, call);
    if (call.spec.attn_mask == 2) tensors.take(call.attn_mask, "attn_mask", call.t1(), {new_tokens, kAny});
    if (call.spec.attn_mask == 3) {
        tensors.take(call.attn_mask, "attn_mask", call.t1(), {call.num_heads, new_tokens, kAny});
    }
    if (file.tensors().contains("sinks")) {
        call.spec.has_sinks = 1;
        tensors.take(call.sinks, "sinks", KVJIT_F32, {call.num_heads});
    }
    const std::int64_t kv_heads = call.num_kv_heads * call.num_repeat;
    tensors.take(call.out_key, "out.key", KVJIT_F32, {kv_tokens, kv_heads, width});
    tensors.take(call.out_value, "out.value", KVJIT_F32, {kv_tokens, kv_heads, width});
    tensors.take(call.out_attn_output, "out.attn_output", KVJIT_F32, {new_tokens, call.num_heads, width});
    tensors.take(call.out_lse, "out.lse", KVJIT_F32, {new_tokens, call.num_heads});
    tensors.refuse_unknown();
    tensors.load();
    if (!tensors.error().empty()) return fail(tensors.error());
    return {};
}

/// Replaying needs the tensors and, in turn, copies of them to be written to: at most as much again.
Result<void> check_memory(const SafetensorsFile& file) {
    const std::size_t available = available_memory();
    if (file.data_bytes() <= available / 2) return {};
    return fail("its tensors have " + std::to_string(file.data_bytes()) +
                " bytes, and replaying takes twice as much memory; available are " + std::to_string(available) +
                " bytes");
}

}  // namespace

std::int64_t RecordedCall::cache_extent(char axis) const {
    const std::size_t at = std::string_view(spec.layout).find(axis);
    return at < cache.shape().size() ? cache.shape()[at] : 1;
}

Result<RecordedCall> read_recorded_call(const SafetensorsFile& file) {
    RecordedCall call;
    if (auto read = read_metadata(file, call); !read) return fail(escaped(file.path()) + ": " + read.error());
    if (auto fits = check_memory(file); !fits) return fail(escaped(file.path()) + ": " + fits.error());
    if (auto read = read_tensors(file, call); !read) return fail(escaped(file.path()) + ": " + read.error());
    return call;
}

}  // namespace kvjit::tool
