// The C ABI's versioned structs and error values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "generator/error.h"
#include "kvjit/blocks.h"
#include "no_fork.h"
#include "relayout/sides.h"
#include "struct_fields.h"

namespace kvjit::rt {

/// A versioned struct of zeros.
template <class T>
T zeroed() {
    T value{};
    value.struct_size = sizeof value;
    return value;
}

/// A versioned struct as its init function leaves it.
template <class T>
T defaults() {
    return zeroed<T>();
}
template <>
kvjit_spec defaults();
template <>
kvjit_engine_options defaults();
template <>
kvjit_plan_options defaults();
template <>
kvjit_blocks_options defaults();
template <>
kvjit_prepare_options defaults();
template <>
kvjit_batch defaults();
template <>
kvjit_relayout defaults();

/// Whether a caller's struct of `size` bytes is this header's, or the shorter one of an older header.
template <class T>
gen::Result<void> check_size(std::size_t size, std::string_view name) {
    if (ends_field<T>(size)) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, std::string(name) + ".struct_size",
                     std::string(name) + ".struct_size is " + std::to_string(size) +
                         "; in this library's header it is " + std::to_string(sizeof(T)) +
                         ", in older ones it is the end of a field",
                     static_cast<std::int64_t>(size), sizeof(T));
}

/// Of a struct of this type whose struct_size is 0, as zeroed memory has it.
gen::Error not_initialised(std::string_view type, std::string_view name, std::size_t bytes);

/// The caller's struct, with defaults for the fields that it lacks. Errors: KVJIT_BAD_ARGUMENT for null and for a size
/// that no header up to this version has.
template <class T>
gen::Result<T> read_struct(const T* given, std::string_view name) {
    if (given == nullptr) return gen::fail(KVJIT_BAD_ARGUMENT, std::string(name), std::string(name) + " is null");
    if (given->struct_size == 0)
        return std::unexpected(not_initialised(kFields<T>.words[0].owner.c_str(), name, sizeof(T)));
    if (auto right = check_size<T>(given->struct_size, name); !right) return std::unexpected(right.error());
    T read = defaults<T>();
    std::memcpy(static_cast<void*>(&read), given, given->struct_size);
    read.struct_size = sizeof(T);
    return read;
}

/// The same, except that null stands for the defaults.
template <class T>
gen::Result<T> read_optional_struct(const T* given, std::string_view name) {
    if (given == nullptr) return defaults<T>();
    return read_struct(given, name);
}

/// Writes `value` to a caller's struct of `size` bytes. Fields that only a newer header has are not written.
template <class T>
void write_struct(T* to, std::size_t size, const T& value) {
    if (size < sizeof to->struct_size) return;
    std::memcpy(static_cast<void*>(to), &value, std::min(size, sizeof(T)));
    to->struct_size = static_cast<std::uint32_t>(size);
}

/// Initialises a caller's struct of `size` bytes; null is ignored.
template <class T>
void init_struct(T* value, std::size_t size) {
    if (value == nullptr) return;
    write_struct(value, size, defaults<T>());
    // Fields that only a newer header has: 0, and refused when the struct is used.
    if (size > sizeof(T)) std::memset(reinterpret_cast<char*>(value) + sizeof(T), 0, size - sizeof(T));
}

/// A plan's options and the structs that they point to, in this version's sizes.
struct PlanOptions {
    kvjit_plan_options options;
    kvjit_executor executor;
    kvjit_batch host_batch;

    /// The options, with pointers into this object where the caller's are not null.
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

/// The size of the first header's kvjit_error: a shorter struct has not been initialised.
inline constexpr std::size_t kErrorBytes = offsetof(kvjit_error, message) + sizeof(kvjit_error::message);

/// Writes an error to the caller's struct, which may be null.
kvjit_status report(const gen::Error& failure, kvjit_error* error);

/// Runs the body of a C entry point that may last, so that forks don't wait for it. The body returns a Result; no
/// exception crosses the C ABI.
template <class Body>
kvjit_status guarded_long(kvjit_error* error, Body body) noexcept {
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

/// The same for all others, which forks by other threads do wait for.
template <class Body>
kvjit_status guarded(kvjit_error* error, Body body) noexcept {
    return guarded_long(error, [&] {
        const NoFork stays;
        return body();
    });
}

/// The same for an entry point that has no error to tell: it ends where the body throws.
template <class Body>
void attempt(Body body) noexcept {
    guarded(nullptr, [&]() -> gen::Result<void> {
        body();
        return {};
    });
}

}  // namespace kvjit::rt
