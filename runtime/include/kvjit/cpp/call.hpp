// How kvjit.hpp calls the C ABI: errors become Results, handles have owners, callables become callbacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "kvjit/cpp/result.hpp"

namespace kvjit::detail {

/// "ARGUMENT is VALUE; SAYS".
inline Error refusal(kvjit_status status, const std::string& argument, std::int64_t value, std::int64_t limit,
                     const std::string& says) {
    return {status, argument.c_str(), (argument + " is " + std::to_string(value) + "; " + says).c_str(), value, limit};
}

/// A text for a function that reads it up to its first NUL, as the argument of this name.
struct Text {
    const char* argument;
    const std::string& text;
    operator const char*() const { return text.c_str(); }
};

/// Whether a function gets all of an argument; else the error says what it would miss.
template <class Argument>
bool is_whole(const Argument&, Error&) {
    return true;
}
inline bool is_whole(const Text& given, Error& error) {
    const std::size_t nul = given.text.find('\0');
    if (nul == std::string::npos) return true;
    const auto at = static_cast<std::int64_t>(nul), size = static_cast<std::int64_t>(given.text.size());
    const std::string message = std::string(given.argument) + " has a NUL at character " + std::to_string(at) + " of " +
                                std::to_string(size) + "; it would end there";
    error = Error(KVJIT_BAD_ARGUMENT, given.argument, message.c_str(), at, size);
    return false;
}

/// Calls a function whose last argument is a kvjit_error*.
template <class Function, class... Arguments>
Result<void> call(Function function, Arguments... arguments) {
    Error error;
    if (!(is_whole(arguments, error) && ...)) return error;
    if (function(arguments..., error.get()) != KVJIT_OK) return error;
    return {};
}

/// The same where the argument before the error points to what is filled in.
template <class Value, class Function, class... Arguments>
Result<Value> fill(Function function, Arguments... arguments) {
    Value value{};
    if (Result<void> done = call(function, arguments..., &value); !done) return done.error();
    return value;
}

/// The same where that is a handle, which `Owner` takes over.
template <class Owner, class Function, class... Arguments>
Result<Owner> make(Function function, Arguments... arguments) {
    auto raw = fill<decltype(std::declval<const Owner&>().get())>(function, arguments...);
    if (!raw) return raw.error();
    return Owner(*raw);
}

/// A callback of the C ABI, a function whose first argument is a context: the address of an F, which it calls. A
/// callback must not throw; where F does, the process ends by std::terminate.
template <class F>
struct Callback {
    template <class... Arguments>
    using Function = void (*)(void* context, Arguments...);

    template <class... Arguments>
    operator Function<Arguments...>() const {
        return [](void* context, Arguments... arguments) noexcept { (*reinterpret_cast<F*>(context))(arguments...); };
    }
};
template <class F>
Callback<F> callback(F&) {
    return {};
}

/// As a callback's context. Plain functions have addresses, too.
template <class F>
void* context_of(F& f) {
    return const_cast<void*>(reinterpret_cast<const void*>(&f));
}

/// A callable that stays: the caller's own, or of a temporary, which holds nothing then, a copy for all.
template <class F>
auto& lasting(F&& f) {
    if constexpr (std::is_lvalue_reference_v<F>) {
        return f;
    } else {
        static_assert(std::is_empty_v<F>, "a temporary ends before it is called: give what it captures a name");
        static F copy(std::forward<F>(f));
        return copy;
    }
}

/// A sink that keeps what it is told.
struct Told {
    std::string text;
    void operator()(const char* piece, std::size_t size) { text.append(piece, size); }
};

/// What a function tells a sink, whose context is its last argument but for the error.
template <class Function, class... Arguments>
Result<std::string> text_of(Function function, Arguments... arguments) {
    Told out;
    if (Result<void> told = call(function, arguments..., callback(out), &out); !told) return told.error();
    return std::move(out.text);
}

/// A unique handle of the C ABI.
template <class T, void (*kRelease)(T*)>
class Handle {
public:
    Handle() = default;
    explicit Handle(T* raw) : raw_(raw) {}
    Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { kRelease(raw_); }
    T* get() const { return raw_; }

private:
    T* raw_ = nullptr;
};

}  // namespace kvjit::detail
