// Where a struct of the C ABI may end: an older header's has the first fields of today's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Offsets of a field, and the size of the struct of a header that has no field behind it.
struct FieldPlace {
    std::size_t begin, end, struct_bytes;
};

constexpr std::size_t round_up(std::size_t bytes, std::size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/// C lays fields out by their sizes and alignments alone, in order.
template <class T, class... Members>
constexpr std::array<FieldPlace, sizeof...(Members)> places(Members T::*...) {
    std::array<FieldPlace, sizeof...(Members)> all{};
    std::size_t count = 0, end = 0, alignment = 1;
    const auto add = [&](std::size_t field_bytes, std::size_t field_alignment) {
        const std::size_t begin = round_up(end, field_alignment);
        end = begin + field_bytes;
        alignment = std::max(alignment, field_alignment);
        all[count++] = {begin, end, round_up(end, alignment)};
    };
    (add(sizeof(Members), alignof(Members)), ...);
    return all;
}

/// All fields of T. A new one stands at the end, of the header's struct and of this list.
template <class T>
inline constexpr int kPlaces = 0;

template <>
inline constexpr auto kPlaces<kvjit_spec> = places(
    &kvjit_spec::struct_size, &kvjit_spec::op, &kvjit_spec::head_dim, &kvjit_spec::value_head_dim, &kvjit_spec::group,
    &kvjit_spec::t1, &kvjit_spec::t2, &kvjit_spec::t3, &kvjit_spec::quant_bit, &kvjit_spec::quant_group,
    &kvjit_spec::cache_mode, &kvjit_spec::page_size, &kvjit_spec::index_type, &kvjit_spec::starts_type,
    &kvjit_spec::is_causal, &kvjit_spec::is_alibi, &kvjit_spec::has_window, &kvjit_spec::has_soft_cap,
    &kvjit_spec::has_sinks, &kvjit_spec::attn_mask, &kvjit_spec::layout, &kvjit_spec::value_layout);

template <>
inline constexpr auto kPlaces<kvjit_engine_options> =
    places(&kvjit_engine_options::struct_size, &kvjit_engine_options::jit, &kvjit_engine_options::cache_dir,
           &kvjit_engine_options::cache_max_bytes, &kvjit_engine_options::template_dir, &kvjit_engine_options::compiler,
           &kvjit_engine_options::log, &kvjit_engine_options::log_context, &kvjit_engine_options::max_idle_kernels);

template <>
inline constexpr auto kPlaces<kvjit_engine_stats> =
    places(&kvjit_engine_stats::struct_size, &kvjit_engine_stats::compiles, &kvjit_engine_stats::disk_hits,
           &kvjit_engine_stats::memory_hits, &kvjit_engine_stats::compile_seconds,
           &kvjit_engine_stats::compiler_load_seconds, &kvjit_engine_stats::disk_seconds);

template <>
inline constexpr auto kPlaces<kvjit_executor> =
    places(&kvjit_executor::struct_size, &kvjit_executor::concurrency, &kvjit_executor::context, &kvjit_executor::run);

template <>
inline constexpr auto kPlaces<kvjit_batch> =
    places(&kvjit_batch::struct_size, &kvjit_batch::batch_size, &kvjit_batch::num_heads, &kvjit_batch::num_kv_heads,
           &kvjit_batch::num_layers, &kvjit_batch::max_tokens, &kvjit_batch::num_blocks, &kvjit_batch::decoding_batches,
           &kvjit_batch::max_seqlen, &kvjit_batch::max_kvlen, &kvjit_batch::seqstarts, &kvjit_batch::kvstarts,
           &kvjit_batch::start_pos, &kvjit_batch::cachestarts, &kvjit_batch::rowstarts, &kvjit_batch::row_index,
           &kvjit_batch::alibi_slopes, &kvjit_batch::softmax_scale, &kvjit_batch::num_repeat, &kvjit_batch::window_left,
           &kvjit_batch::window_right, &kvjit_batch::soft_cap, &kvjit_batch::kvlens, &kvjit_batch::last_page_len,
           &kvjit_batch::scalestarts, &kvjit_batch::store_slots);

template <>
inline constexpr auto kPlaces<kvjit_plan_options> =
    places(&kvjit_plan_options::struct_size, &kvjit_plan_options::check_level, &kvjit_plan_options::executor,
           &kvjit_plan_options::workspace, &kvjit_plan_options::workspace_bytes, &kvjit_plan_options::num_threads,
           &kvjit_plan_options::stream, &kvjit_plan_options::host_batch, &kvjit_plan_options::split_keys,
           &kvjit_plan_options::stores_nothing);

template <>
inline constexpr auto kPlaces<kvjit_tensors> = places(
    &kvjit_tensors::struct_size, &kvjit_tensors::query, &kvjit_tensors::current_key, &kvjit_tensors::current_value,
    &kvjit_tensors::cache, &kvjit_tensors::scale, &kvjit_tensors::key_cache, &kvjit_tensors::value_cache,
    &kvjit_tensors::key_scale, &kvjit_tensors::value_scale, &kvjit_tensors::attn_mask, &kvjit_tensors::sinks,
    &kvjit_tensors::key, &kvjit_tensors::value, &kvjit_tensors::partial_output, &kvjit_tensors::partial_lse,
    &kvjit_tensors::attn_output, &kvjit_tensors::lse);

/// No field lies where an older header's struct has padding, which its programs hand over with anything in it.
template <std::size_t N>
constexpr bool none_in_padding(const std::array<FieldPlace, N>& all) {
    for (std::size_t i = 1; i < N; ++i) {
        if (all[i].begin < all[i - 1].struct_bytes) return false;
    }
    return true;
}

/// Whether a T of `size` bytes ends with a field, or with the padding behind it. Any other size would cut one in two.
template <class T>
constexpr bool ends_field(std::size_t size) {
    static_assert(kPlaces<T>.back().struct_bytes == sizeof(T), "every field stands in the list");
    static_assert(none_in_padding(kPlaces<T>), "a new field lies behind the padding of older headers");
    return std::ranges::any_of(
        kPlaces<T>, [&](const FieldPlace& place) { return size == place.end || size == place.struct_bytes; });
}

}  // namespace kvjit::rt
