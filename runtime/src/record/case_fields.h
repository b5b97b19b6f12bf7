// What a recorded call has, by the names of kvjit.h's fields (docs/recording.md): one table for the library, which
// writes recordings, and for the command, which reads them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "kvjit/kvjit.h"

namespace kvjit::record {

/// Values of the metadata field `format`: of recordings, and of reference cases (docs/semantics.md, section 9).
inline constexpr std::string_view kFormat = "kvjit.case.2";
inline constexpr std::string_view kReferenceFormat = "kvjit.case.1";

/// Metadata that begin with this are for people: they say what the recording has changed.
inline constexpr std::string_view kRemark = "was.";
/// Metadata of a tensor's strides, "strides.query"; tensors without it are dense.
inline constexpr std::string_view kStrides = "strides.";
/// Tensors that the call wrote, as they came out: "got.attn_output".
inline constexpr std::string_view kGot = "got.";
/// Tensors that an oracle computed.
inline constexpr std::string_view kOut = "out.";

/// Blocks of a block_pointers cache, (blocks, the layout's axes); the tables have their numbers.
inline constexpr std::string_view kBlocks = "blocks";
inline constexpr std::string_view kScaleBlocks = "scale_blocks";

/// A type, and the safetensors format's name for it.
struct StoredType {
    kvjit_dtype dtype;
    std::string_view name;
};
inline constexpr auto kStoredTypes = std::to_array<StoredType>({{KVJIT_F32, "F32"},
                                                                {KVJIT_F16, "F16"},
                                                                {KVJIT_BF16, "BF16"},
                                                                {KVJIT_I8, "I8"},
                                                                {KVJIT_U8, "U8"},
                                                                {KVJIT_I32, "I32"},
                                                                {KVJIT_I64, "I64"}});
/// "": KVJIT_AUTO, which is no tensor's.
constexpr std::string_view stored_name(kvjit_dtype dtype) {
    const auto* row = std::ranges::find(kStoredTypes, dtype, &StoredType::dtype);
    return row == kStoredTypes.end() ? std::string_view() : row->name;
}
/// KVJIT_AUTO: a type that kvjit doesn't have.
constexpr kvjit_dtype stored_dtype(std::string_view name) {
    const auto* row = std::ranges::find(kStoredTypes, name, &StoredType::name);
    return row == kStoredTypes.end() ? KVJIT_AUTO : row->dtype;
}

template <class T>
struct BatchNumber {
    std::string_view name;
    T kvjit_batch::* member;
};
/// Metadata; a file that lacks one means what kvjit_batch_init sets. num_layers is 1.
inline constexpr auto kCounts =
    std::to_array<BatchNumber<std::int64_t>>({{"num_heads", &kvjit_batch::num_heads},
                                              {"num_kv_heads", &kvjit_batch::num_kv_heads},
                                              {"max_tokens", &kvjit_batch::max_tokens},
                                              {"num_blocks", &kvjit_batch::num_blocks},
                                              {"decoding_batches", &kvjit_batch::decoding_batches},
                                              {"max_seqlen", &kvjit_batch::max_seqlen},
                                              {"max_kvlen", &kvjit_batch::max_kvlen},
                                              {"num_repeat", &kvjit_batch::num_repeat},
                                              {"window_left", &kvjit_batch::window_left},
                                              {"window_right", &kvjit_batch::window_right}});
inline constexpr auto kFractions = std::to_array<BatchNumber<float>>(
    {{"softmax_scale", &kvjit_batch::softmax_scale}, {"soft_cap", &kvjit_batch::soft_cap}});

/// An array of B + `more` elements of the spec's starts_type.
struct BatchArray {
    std::string_view name;
    const void* kvjit_batch::* member;
    int more;
};
inline constexpr auto kArrays = std::to_array<BatchArray>({{"seqstarts", &kvjit_batch::seqstarts, 1},
                                                           {"kvstarts", &kvjit_batch::kvstarts, 1},
                                                           {"start_pos", &kvjit_batch::start_pos, 0},
                                                           {"rowstarts", &kvjit_batch::rowstarts, 1},
                                                           {"row_index", &kvjit_batch::row_index, 0},
                                                           {"kvlens", &kvjit_batch::kvlens, 0},
                                                           {"last_page_len", &kvjit_batch::last_page_len, 0}});

/// An array with axes, of one layer.
struct BatchTable {
    std::string_view name;
    kvjit_tensor kvjit_batch::* member;
};
inline constexpr auto kTables = std::to_array<BatchTable>({{"cachestarts", &kvjit_batch::cachestarts},
                                                           {"scalestarts", &kvjit_batch::scalestarts},
                                                           {"store_slots", &kvjit_batch::store_slots}});

}  // namespace kvjit::record
