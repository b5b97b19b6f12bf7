// The C ABI's versioned structs and error values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "generator/error.h"
#include "relayout/sides.h"
#include "struct_fields.h"

namespace kvjit::rt {

/// A versioned struct as its init function leaves it.
template <class T>
T defaults() {
    T value{};
    value.struct_size = sizeof value;
    return value;
}
template <>
kvjit_spec defaults();
template <>
kvjit_engine_options defaults();
template <>
kvjit_prepare_options defaults();
template <>
kvjit_batch defaults();
template <>
kvjit_relayout defaults();

/// Whether a caller's struct of `size` bytes is one of this header's or of an older one's, which is shorter.
template <class T>
gen::Result<void> check_size(std::size_t size, std::string_view name) {
    if (ends_field<T>(size)) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, std::string(name) + ".struct_size",
                     std::string(name) + ".struct_size is " + std::to_string(size) +
                         "; in this library's header it is " + std::to_string(sizeof(T)) +
                         ", in older ones it is the end of a field",
                     static_cast<std::int64_t>(size), sizeof(T));
}

/// Copies what a caller's struct has over the defaults.
/// Errors: KVJIT_BAD_ARGUMENT for null and for a size that no header of up to this version has.
template <class T>
gen::Result<T> read_struct(const T* given, std::string_view name) {
    if (given == nullptr) return gen::fail(KVJIT_BAD_ARGUMENT, std::string(name), std::string(name) + " is null");
    if (auto right = check_size<T>(given->struct_size, name); !right) return std::unexpected(right.error());
    T read = defaults<T>();
    std::memcpy(static_cast<void*>(&read), given, given->struct_size);
    read.struct_size = sizeof(T);
    return read;
}

/// The same where null stands for the defaults.
template <class T>
gen::Result<T> read_optional_struct(const T* given, std::string_view name) {
    if (given == nullptr) return defaults<T>();
    return read_struct(given, name);
}

/// Hands `value` to a caller whose struct has `size` bytes. What a newer header has behind them is left alone.
template <class T>
void write_struct(T* to, std::size_t size, const T& value) {
    if (size < sizeof to->struct_size) return;
    std::memcpy(static_cast<void*>(to), &value, std::min(size, sizeof(T)));
    to->struct_size = static_cast<std::uint32_t>(size);
}

/// Sets a caller's struct of `size` bytes up, where there is one.
template <class T>
void init_struct(T* value, std::size_t size) {
    if (value == nullptr) return;
    write_struct(value, size, defaults<T>());
    // What this library doesn't know of a newer header's struct: 0, and refused when it is used.
    if (size > sizeof(T)) std::memset(reinterpret_cast<char*>(value) + sizeof(T), 0, size - sizeof(T));
}

/// A plan's options with what they point to, in this version's sizes.
struct PlanOptions {
    kvjit_plan_options options;
    kvjit_executor executor;
    kvjit_batch host_batch;

    /// The options, with pointers into this object where the caller's have any.
    kvjit_plan_options pointing() const {
        kvjit_plan_options all = options;
        if (all.executor != nullptr) all.executor = &executor;
        if (all.host_batch != nullptr) all.host_batch = &host_batch;
        return all;
    }
};
gen::Result<PlanOptions> read_plan_options(const kvjit_plan_options* given);

/// A relayout with the batches that it points to, in this version's sizes; its own pointers mean nothing.
gen::Result<RelayoutRequest> read_relayout(const kvjit_relayout* given);

gen::Result<void> not_null(const void* pointer, const char* name);
gen::Result<void> has_sink(kvjit_sink sink);

/// A kvjit_error of the first header: whoever's is shorter has not set it up.
inline constexpr std::size_t kErrorBytes = offsetof(kvjit_error, message) + sizeof(kvjit_error::message);

/// Hands an error to the caller, who may not want it.
kvjit_status report(const gen::Error& failure, kvjit_error* error);

/// Runs a C entry point's body, which gives a Result; nothing is ever thrown across the C ABI.
template <class Body>
kvjit_status guarded(kvjit_error* error, Body body) noexcept {
    try {
        const auto result = body();
        return result ? KVJIT_OK : report(result.error(), error);
    } catch (const std::bad_alloc&) {
        return report({KVJIT_OUT_OF_MEMORY, "out of memory", "memory", 0, 0, -1}, error);
    } catch (const std::exception& exception) {
        return report({KVJIT_INTERNAL, exception.what(), "kvjit", 0, 0, -1}, error);
    } catch (...) {
        return report({KVJIT_INTERNAL, "a callback threw", "kvjit", 0, 0, -1}, error);
    }
}

}  // namespace kvjit::rt
