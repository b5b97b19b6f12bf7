// The engine's messages that are not errors. The library itself prints nothing, unless KVJIT_LOG asks for it.
#pragma once

#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Where messages go, and from which level on. A default one takes none. Thread-safe if its sink is.
class Log {
public:
    using Sink = std::function<void(kvjit_log_level, const std::string&)>;

    Log() = default;
    Log(Sink sink, kvjit_log_level least) : least_(least), sink_(std::move(sink)) {}
    /// From KVJIT_LOG_INFO on.
    template <std::invocable<kvjit_log_level, const std::string&> F>
        requires(!std::same_as<std::remove_cvref_t<F>, Log>)
    Log(F&& sink) : Log(Sink(std::forward<F>(sink)), KVJIT_LOG_INFO) {}

    /// Whether a message of this level goes anywhere: what is costly to say is only put together if so.
    bool takes(kvjit_log_level level) const { return level >= least_; }
    void operator()(kvjit_log_level level, const std::string& message) const {
        if (takes(level)) sink_(level, message);
    }

private:
    int least_ = std::numeric_limits<int>::max();
    Sink sink_;
};

/// "warning", "info", "debug", "trace"; nothing for any other word.
std::optional<kvjit_log_level> parse_log_level(std::string_view word);

/// Messages go to both.
Log both(Log one, Log other);

/// "kvjit: debug: MESSAGE", a line of standard error in one write, so that lines of threads and processes don't mix.
/// What can't be written is lost. `least`: nothing for no message at all.
Log standard_error_log(std::optional<kvjit_log_level> least);

/// A message about an event: its name, then "name=value" in the order in which they were added.
class LogLine {
public:
    explicit LogLine(std::string_view event) : text_(event) {}

    /// In double quotes, unless it is a plain word; `"`, backslashes and line breaks are escaped as in C.
    LogLine& add(std::string_view name, std::string_view value);
    LogLine& add(std::string_view name, std::integral auto value) { return add_plain(name, std::to_string(value)); }
    /// As milliseconds, to the microsecond.
    LogLine& add_ms(double seconds);
    const std::string& text() const { return text_; }

private:
    LogLine& add_plain(std::string_view name, std::string_view value);

    std::string text_;
};

}  // namespace kvjit::rt
