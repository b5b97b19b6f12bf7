// What a fallible call gives: a value or an Error, as values. Part of kvjit.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "kvjit/kvjit.h"

namespace kvjit {

/// Why a call was refused. See kvjit_error.
class Error {
public:
    Error() { kvjit_error_init(&error_); }
    /// For errors of a program's own; texts that don't fit are cut.
    Error(kvjit_status status, const char* argument, const char* message, std::int64_t value = 0,
          std::int64_t limit = 0)
        : Error() {
        error_.status = status;
        error_.value = value;
        error_.limit = limit;
        std::snprintf(error_.argument, sizeof error_.argument, "%s", argument);
        std::snprintf(error_.message, sizeof error_.message, "%s", message);
    }
    kvjit_status status() const { return static_cast<kvjit_status>(error_.status); }
    const char* message() const { return error_.message; }
    const char* argument() const { return error_.argument; }
    std::int64_t value() const { return error_.value; }
    std::int64_t limit() const { return error_.limit; }
    std::int64_t sequence() const { return error_.sequence; }
    /// For C calls that take a kvjit_error*.
    kvjit_error* get() { return &error_; }

private:
    kvjit_error error_;
};

namespace detail {

/// An Error on the heap that copies share: what isn't there costs a pointer. Where memory ends, it is an Error that
/// says so.
class SharedError {
public:
    SharedError() = default;
    explicit SharedError(const Error& error) : held_(new(std::nothrow) Held{error, {1}}) {
        if (held_ == nullptr) held_ = out_of_memory();
    }
    /// Copying is all there is, so that a Result that was moved from still has its Error.
    SharedError(const SharedError& other) noexcept : held_(other.held_) {
        if (held_ != nullptr) held_->owners.fetch_add(1, std::memory_order_relaxed);
    }
    SharedError& operator=(SharedError other) noexcept {
        std::swap(held_, other.held_);
        return *this;
    }
    ~SharedError() {
        if (held_ != nullptr && held_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete held_;
    }
    explicit operator bool() const { return held_ != nullptr; }
    const Error& operator*() const { return held_->error; }

private:
    struct Held {
        Error error;
        std::atomic<long> owners;
    };
    /// Owned by itself, too: nobody deletes it.
    static Held* out_of_memory() {
        static Held held{Error(KVJIT_OUT_OF_MEMORY, "memory", "out of memory, and none for the error that was met"),
                         {1}};
        held.owners.fetch_add(1, std::memory_order_relaxed);
        return &held;
    }
    Held* held_ = nullptr;
};

}  // namespace detail

#if defined(__cpp_exceptions)
/// What Result::value() throws where there is none: what() is the Error's message.
class Exception : public std::runtime_error {
public:
    explicit Exception(const detail::SharedError& error) : std::runtime_error((*error).message()), error_(error) {}
    const Error& error() const noexcept { return *error_; }
    kvjit_status status() const noexcept { return error().status(); }

private:
    detail::SharedError error_;
};
#endif

namespace detail {

[[noreturn]] inline void no_value(const SharedError& error) {
#if defined(__cpp_exceptions)
    throw Exception(error);
#else
    static_cast<void>(error);
    std::abort();
#endif
}

}  // namespace detail

/// A value or an Error, shaped like std::expected. An Error is allocated when there is one; success pays nothing for
/// it.
template <class T>
class [[nodiscard]] Result {
public:
    using value_type = T;
    using error_type = Error;

    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(const Error& error) : state_(std::in_place_index<1>, error) {}

    bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }
    /// Precondition of the next five: has_value(). Of a Result that ends with its expression * hands out the value
    /// itself, so that it lives on where it is bound: for (const auto& one : *kernel.images()). What -> reaches
    /// doesn't.
    T& operator*() & { return *std::get_if<0>(&state_); }
    const T& operator*() const& { return *std::get_if<0>(&state_); }
    T operator*() && { return std::move(*std::get_if<0>(&state_)); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }
    /// Without a value: throws Exception. Where exceptions are switched off (-fno-exceptions), calls std::abort.
    T& value() & { return demand(), **this; }
    const T& value() const& { return demand(), **this; }
    T value() && { return demand(), *std::move(*this); }
    /// Precondition: !has_value(). As long as this Result, or a copy of it.
    const Error& error() const { return **std::get_if<1>(&state_); }

private:
    void demand() const {
        if (!has_value()) detail::no_value(*std::get_if<1>(&state_));
    }
    std::variant<T, detail::SharedError> state_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;
    using error_type = Error;

    Result() = default;
    Result(const Error& error) : error_(error) {}

    bool has_value() const { return !error_; }
    explicit operator bool() const { return has_value(); }
    /// After a failure as Result<T>'s.
    void value() const {
        if (error_) detail::no_value(error_);
    }
    /// Precondition: !has_value(). As long as this Result, or a copy of it.
    const Error& error() const { return *error_; }

private:
    detail::SharedError error_;
};

}  // namespace kvjit
