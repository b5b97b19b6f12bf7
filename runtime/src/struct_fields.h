// The fields of the C ABI's structs: for bindings that read no header, and for where a struct may end, since an older
// header's has the first fields of today's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// A word that C reads, made when the library is compiled; one that is too long doesn't compile.
class Word {
public:
    constexpr Word() = default;
    constexpr explicit Word(std::string_view text) { append(text); }
    constexpr void append(std::string_view text) {
        for (const char c : text) text_.at(size_++) = c;
        text_.at(size_) = '\0';
    }
    constexpr void append_number(std::size_t number) {
        if (number >= 10) append_number(number / 10);
        const char digit[] = {static_cast<char>('0' + number % 10)};
        append({digit, 1});
    }
    constexpr const char* c_str() const { return text_.data(); }

private:
    std::array<char, 32> text_{};
    std::size_t size_ = 0;
};

/// Offsets of a field, and the size of the struct of a header that has no field behind it.
struct FieldPlace {
    std::size_t begin, end, struct_bytes;
};

/// "kvjit_spec", "layout", "char[8]"
struct FieldWords {
    Word owner, name, type;
};

template <std::size_t N>
struct Fields {
    std::array<FieldPlace, N> places;
    std::array<FieldWords, N> words;
};

template <class T>
constexpr std::string_view element_type() {
    if constexpr (std::is_pointer_v<T>) return "pointer";
    if constexpr (std::is_same_v<T, char>) return "char";
    if constexpr (std::is_same_v<T, std::int32_t>) return "int32_t";
    if constexpr (std::is_same_v<T, std::uint32_t>) return "uint32_t";
    if constexpr (std::is_same_v<T, std::int64_t>) return "int64_t";
    if constexpr (std::is_same_v<T, std::uint64_t>) return "uint64_t";
    if constexpr (std::is_same_v<T, float>) return "float";
    if constexpr (std::is_same_v<T, double>) return "double";
    if constexpr (std::is_same_v<T, kvjit_tensor>) return "kvjit_tensor";
}

/// As kvjit_struct_fields names it.
template <class T>
constexpr Word type_word() {
    Word word(element_type<std::remove_extent_t<T>>());
    if constexpr (std::is_array_v<T>) {
        word.append("[");
        word.append_number(std::extent_v<T>);
        word.append("]");
    }
    return word;
}

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

/// "&kvjit_spec::layout" of a field of this type.
template <class Member>
constexpr FieldWords words_of(std::string_view pointer) {
    const std::size_t owner = pointer.find('&') + 1, colons = pointer.find("::");
    return {Word(pointer.substr(owner, colons - owner)), Word(pointer.substr(colons + 2)), type_word<Member>()};
}

/// `pointers` is the text of the arguments behind it: "&kvjit_spec::struct_size, &kvjit_spec::op".
template <class T, class... Members>
constexpr std::array<FieldWords, sizeof...(Members)> words(std::string_view pointers, Members T::*...) {
    const auto next = [&] {
        const std::size_t size = std::min(pointers.find(','), pointers.size());
        const std::string_view pointer = pointers.substr(0, size);
        pointers.remove_prefix(std::min(size + 1, pointers.size()));
        return pointer;
    };
    return {words_of<Members>(next())...};
}

#define KVJIT_FIELDS(...)                                     \
    Fields {                                                  \
        places(__VA_ARGS__), words(#__VA_ARGS__, __VA_ARGS__) \
    }

/// All fields of T. A new one stands at the end, of the header's struct and of this list.
template <class T>
inline constexpr int kFields = 0;

template <>
inline constexpr auto kFields<kvjit_error> =
    KVJIT_FIELDS(&kvjit_error::struct_size, &kvjit_error::status, &kvjit_error::value, &kvjit_error::limit,
                 &kvjit_error::sequence, &kvjit_error::argument, &kvjit_error::message);

template <>
inline constexpr auto kFields<kvjit_tensor> =
    KVJIT_FIELDS(&kvjit_tensor::data, &kvjit_tensor::dtype, &kvjit_tensor::rank, &kvjit_tensor::shape,
                 &kvjit_tensor::strides, &kvjit_tensor::reserved);

template <>
inline constexpr auto kFields<kvjit_spec> = KVJIT_FIELDS(
    &kvjit_spec::struct_size, &kvjit_spec::op, &kvjit_spec::head_dim, &kvjit_spec::value_head_dim, &kvjit_spec::group,
    &kvjit_spec::t1, &kvjit_spec::t2, &kvjit_spec::t3, &kvjit_spec::quant_bit, &kvjit_spec::quant_group,
    &kvjit_spec::cache_mode, &kvjit_spec::page_size, &kvjit_spec::index_type, &kvjit_spec::starts_type,
    &kvjit_spec::is_causal, &kvjit_spec::is_alibi, &kvjit_spec::has_window, &kvjit_spec::has_soft_cap,
    &kvjit_spec::has_sinks, &kvjit_spec::attn_mask, &kvjit_spec::layout, &kvjit_spec::value_layout);

template <>
inline constexpr auto kFields<kvjit_engine_options> = KVJIT_FIELDS(
    &kvjit_engine_options::struct_size, &kvjit_engine_options::jit, &kvjit_engine_options::cache_dir,
    &kvjit_engine_options::cache_max_bytes, &kvjit_engine_options::template_dir, &kvjit_engine_options::compiler,
    &kvjit_engine_options::log, &kvjit_engine_options::log_context, &kvjit_engine_options::max_idle_kernels,
    &kvjit_engine_options::bundle_key, &kvjit_engine_options::trace_specs, &kvjit_engine_options::on_late_compile,
    &kvjit_engine_options::late_compile_context);

template <>
inline constexpr auto kFields<kvjit_engine_stats> = KVJIT_FIELDS(
    &kvjit_engine_stats::struct_size, &kvjit_engine_stats::compiles, &kvjit_engine_stats::disk_hits,
    &kvjit_engine_stats::memory_hits, &kvjit_engine_stats::compile_seconds, &kvjit_engine_stats::compiler_load_seconds,
    &kvjit_engine_stats::disk_seconds, &kvjit_engine_stats::bundle_hits, &kvjit_engine_stats::bundle_seconds,
    &kvjit_engine_stats::late_compiles);

template <>
inline constexpr auto kFields<kvjit_prepare_options> = KVJIT_FIELDS(
    &kvjit_prepare_options::struct_size, &kvjit_prepare_options::programs, &kvjit_prepare_options::num_threads,
    &kvjit_prepare_options::progress, &kvjit_prepare_options::progress_context);

template <>
inline constexpr auto kFields<kvjit_executor> = KVJIT_FIELDS(&kvjit_executor::struct_size, &kvjit_executor::concurrency,
                                                             &kvjit_executor::context, &kvjit_executor::run);

template <>
inline constexpr auto kFields<kvjit_batch> = KVJIT_FIELDS(
    &kvjit_batch::struct_size, &kvjit_batch::batch_size, &kvjit_batch::num_heads, &kvjit_batch::num_kv_heads,
    &kvjit_batch::num_layers, &kvjit_batch::max_tokens, &kvjit_batch::num_blocks, &kvjit_batch::decoding_batches,
    &kvjit_batch::max_seqlen, &kvjit_batch::max_kvlen, &kvjit_batch::seqstarts, &kvjit_batch::kvstarts,
    &kvjit_batch::start_pos, &kvjit_batch::cachestarts, &kvjit_batch::rowstarts, &kvjit_batch::row_index,
    &kvjit_batch::alibi_slopes, &kvjit_batch::softmax_scale, &kvjit_batch::num_repeat, &kvjit_batch::window_left,
    &kvjit_batch::window_right, &kvjit_batch::soft_cap, &kvjit_batch::kvlens, &kvjit_batch::last_page_len,
    &kvjit_batch::scalestarts, &kvjit_batch::store_slots);

template <>
inline constexpr auto kFields<kvjit_plan_options> =
    KVJIT_FIELDS(&kvjit_plan_options::struct_size, &kvjit_plan_options::check_level, &kvjit_plan_options::executor,
                 &kvjit_plan_options::workspace, &kvjit_plan_options::workspace_bytes, &kvjit_plan_options::num_threads,
                 &kvjit_plan_options::stream, &kvjit_plan_options::host_batch, &kvjit_plan_options::split_keys,
                 &kvjit_plan_options::stores_nothing);

template <>
inline constexpr auto kFields<kvjit_tensors> = KVJIT_FIELDS(
    &kvjit_tensors::struct_size, &kvjit_tensors::query, &kvjit_tensors::current_key, &kvjit_tensors::current_value,
    &kvjit_tensors::cache, &kvjit_tensors::scale, &kvjit_tensors::key_cache, &kvjit_tensors::value_cache,
    &kvjit_tensors::key_scale, &kvjit_tensors::value_scale, &kvjit_tensors::attn_mask, &kvjit_tensors::sinks,
    &kvjit_tensors::key, &kvjit_tensors::value, &kvjit_tensors::partial_output, &kvjit_tensors::partial_lse,
    &kvjit_tensors::attn_output, &kvjit_tensors::lse);

template <>
inline constexpr auto kFields<kvjit_image_info> = KVJIT_FIELDS(
    &kvjit_image_info::struct_size, &kvjit_image_info::program, &kvjit_image_info::origin, &kvjit_image_info::is_loaded,
    &kvjit_image_info::revision, &kvjit_image_info::object_bytes, &kvjit_image_info::name, &kvjit_image_info::variant,
    &kvjit_image_info::target, &kvjit_image_info::identity, &kvjit_image_info::place);

#undef KVJIT_FIELDS

/// One struct, whichever it is.
struct StructFields {
    std::size_t bytes;
    std::span<const FieldPlace> places;
    std::span<const FieldWords> words;

    constexpr const char* name() const { return words.front().owner.c_str(); }
};
template <class T>
constexpr StructFields struct_fields() {
    static_assert(kFields<T>.places.back().struct_bytes == sizeof(T), "every field stands in the list");
    return {sizeof(T), kFields<T>.places, kFields<T>.words};
}

/// All structs of kvjit.h; those that others hold stand before them.
inline constexpr StructFields kStructs[] = {
    struct_fields<kvjit_error>(),          struct_fields<kvjit_tensor>(),       struct_fields<kvjit_spec>(),
    struct_fields<kvjit_engine_options>(), struct_fields<kvjit_engine_stats>(), struct_fields<kvjit_prepare_options>(),
    struct_fields<kvjit_executor>(),       struct_fields<kvjit_batch>(),        struct_fields<kvjit_plan_options>(),
    struct_fields<kvjit_tensors>(),        struct_fields<kvjit_image_info>()};

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
    static_assert(none_in_padding(kFields<T>.places), "a new field lies behind the padding of older headers");
    return std::ranges::any_of(
        kFields<T>.places, [&](const FieldPlace& place) { return size == place.end || size == place.struct_bytes; });
}

}  // namespace kvjit::rt
