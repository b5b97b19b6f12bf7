// The fields of the C ABI's structs: for bindings that read no header, and to check a caller's struct size, since an
// older header's struct has the first fields of today's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "kvjit/blocks.h"
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

/// A field's offset, and the size of the struct in a header where that field is the last one.
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

/// A type's name in kvjit_struct_fields.
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

/// C places fields by their sizes and alignments alone, in order.
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

/// "&kvjit_spec::layout" for a field of this type.
template <class Member>
constexpr FieldWords words_of(std::string_view pointer) {
    const std::size_t owner = pointer.find('&') + 1, colons = pointer.find("::");
    return {Word(pointer.substr(owner, colons - owner)), Word(pointer.substr(colons + 2)), type_word<Member>()};
}

/// `pointers` is the text of the remaining arguments: "&kvjit_spec::struct_size, &kvjit_spec::op".
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

/// All fields of T.
template <class T>
inline constexpr int kFields = 0;

// The build makes the rows from the headers: cmake/struct_fields.cmake.
#define KVJIT_STRUCT(T, ...) \
    template <>              \
    inline constexpr auto kFields<T> = Fields{places(__VA_ARGS__), words(#__VA_ARGS__, __VA_ARGS__)};
#include "struct_fields.inc"
#undef KVJIT_STRUCT

/// The fields of one struct of any type.
struct StructFields {
    std::size_t bytes;
    std::span<const FieldPlace> places;
    std::span<const FieldWords> words;

    constexpr const char* name() const { return words.front().owner.c_str(); }
};
template <class T>
constexpr StructFields struct_fields() {
    static_assert(kFields<T>.places.back().struct_bytes == sizeof(T), "every field is found");
    return {sizeof(T), kFields<T>.places, kFields<T>.words};
}

/// All structs of kvjit.h and then blocks.h, in their order.
#define KVJIT_STRUCT(T, ...) struct_fields<T>(),
inline constexpr StructFields kStructs[] = {
#include "struct_fields.inc"
};
#undef KVJIT_STRUCT

/// No field lies in an older header's padding, whose bytes are undefined in callers' structs.
template <std::size_t N>
constexpr bool none_in_padding(const std::array<FieldPlace, N>& all) {
    for (std::size_t i = 1; i < N; ++i) {
        if (all[i].begin < all[i - 1].struct_bytes) return false;
    }
    return true;
}

/// Whether a T of `size` bytes ends with a field, or with the padding after it. Any other size would split a field.
template <class T>
constexpr bool ends_field(std::size_t size) {
    static_assert(none_in_padding(kFields<T>.places), "a new field lies past the padding of older headers");
    return std::ranges::any_of(
        kFields<T>.places, [&](const FieldPlace& place) { return size == place.end || size == place.struct_bytes; });
}

}  // namespace kvjit::rt
