// The C ABI's versioned structs and error values.
#pragma once

#include <cstring>
#include <new>

#include "generator/error.h"

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
kvjit_batch defaults();

/// Copies what a caller's struct has over the defaults: callers compiled against an older header give a shorter one.
/// Errors: KVJIT_BAD_ARGUMENT for null and for a size that no header of up to this version has.
template <class T>
gen::Result<T> read_struct(const T* given, std::string_view name) {
    if (given == nullptr) return gen::fail(KVJIT_BAD_ARGUMENT, std::string(name), std::string(name) + " is null");
    const std::size_t size = given->struct_size;
    if (size < sizeof given->struct_size || size > sizeof(T)) {
        return gen::fail(KVJIT_BAD_ARGUMENT, std::string(name) + ".struct_size",
                         std::string(name) + ".struct_size is " + std::to_string(size) + "; its init function sets " +
                             std::to_string(sizeof(T)),
                         static_cast<std::int64_t>(size), sizeof(T));
    }
    T read = defaults<T>();
    std::memcpy(static_cast<void*>(&read), given, size);
    read.struct_size = sizeof(T);
    return read;
}

/// The same where null stands for the defaults.
template <class T>
gen::Result<T> read_optional_struct(const T* given, std::string_view name) {
    if (given == nullptr) return defaults<T>();
    return read_struct(given, name);
}

gen::Result<void> not_null(const void* pointer, const char* name);

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
