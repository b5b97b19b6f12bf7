#include "log.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "quiet_write.h"

namespace kvjit::rt {
namespace {

struct Level {
    kvjit_log_level level;
    std::string_view name;
};
constexpr Level kLevels[] = {
    {KVJIT_LOG_WARNING, "warning"}, {KVJIT_LOG_INFO, "info"}, {KVJIT_LOG_DEBUG, "debug"}, {KVJIT_LOG_TRACE, "trace"}};

/// Letters, digits and what names of targets, programs and images have.
bool is_plain(std::string_view value) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:";
    return !value.empty() && value.find_first_not_of(kPlain) == std::string_view::npos;
}

std::string quoted(std::string_view value) {
    std::string text = "\"";
    for (const char c : value) {
        if (c == '\n') {
            text += "\\n";
            continue;
        }
        if (c == '"' || c == '\\') text += '\\';
        text += c;
    }
    return text + '"';
}

void write_line(kvjit_log_level level, const std::string& message) {
    const auto row = std::ranges::find(kLevels, level, &Level::level);
    const std::string line = "kvjit: " + std::string(row->name) + ": " + message + "\n";
    std::string_view rest = line;
    write_quietly(STDERR_FILENO, rest);  // a log that can't be written must not fail a call
}

}  // namespace

std::optional<kvjit_log_level> parse_log_level(std::string_view word) {
    const auto row = std::ranges::find(kLevels, word, &Level::name);
    return row != std::end(kLevels) ? std::optional(row->level) : std::nullopt;
}

Log both(Log one, Log other) {
    if (!one.takes(KVJIT_LOG_WARNING)) return other;
    if (!other.takes(KVJIT_LOG_WARNING)) return one;
    kvjit_log_level least = KVJIT_LOG_WARNING;
    for (const Level& row : kLevels) {
        if (one.takes(row.level) || other.takes(row.level)) least = row.level;
    }
    const auto tell = [one = std::move(one), other = std::move(other)](kvjit_log_level level, const std::string& text) {
        one(level, text);
        other(level, text);
    };
    return {tell, least};
}

Log standard_error_log(std::optional<kvjit_log_level> least) {
    return least ? Log(write_line, *least) : Log();
}

LogLine& LogLine::add(std::string_view name, std::string_view value) {
    return add_plain(name, is_plain(value) ? std::string(value) : quoted(value));
}

LogLine& LogLine::add_ms(double seconds) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.3f", seconds * 1e3);
    return add_plain("ms", digits);
}

LogLine& LogLine::add_plain(std::string_view name, std::string_view value) {
    text_.append(" ").append(name).append("=").append(value);
    return *this;
}

}  // namespace kvjit::rt
