// Standard output and standard error as a command must treat them: colour and progress on terminals only, an end when
// the reader is gone, and no other failed write that goes unnoticed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvjit::tool {

/// Lets SIGPIPE end the command without a word, as it ends any command before `| head`, also where the parent ignores
/// it; and makes closed standard streams unwritable instead of free numbers that the next opened file would get. Call
/// once, first.
void prepare_standard_streams();

/// Whether standard output is a terminal, which must receive only text.
bool output_is_terminal();

/// Writes to standard output. Failures are remembered: see output_is_good.
void print(std::string_view text);

/// Flushes standard output. If anything written since the start was lost, says so on standard error and returns false.
bool output_is_good();

/// `text` with control characters and what is not UTF-8 as \xNN: what users and files wrote must not drive a terminal,
/// and a line break in a name must not begin a line.
std::string escaped(std::string_view text);

/// The same for a text of several lines: line breaks and tabs stay.
std::string escaped_lines(std::string_view text);

/// `text` in single quotes, long ones cut, control characters escaped.
std::string in_quotes(std::string_view text);

/// "kvjit: MESSAGE" on standard error, its control characters escaped but for line breaks and tabs.
void complain(std::string_view message);

enum class Colour { kGreen, kRed, kDim };
/// `text` in colour if standard output is a terminal and NO_COLOR is unset, else unchanged.
std::string coloured(std::string_view text, Colour colour);

/// A bar on standard error, shown only on a terminal and only once a second has passed.
class Progress {
public:
    explicit Progress(std::int64_t total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void advance(std::string_view what);
    /// Removes the bar so that other lines can be written.
    void clear();

private:
    std::int64_t total_;
    std::int64_t done_ = 0;
    bool on_terminal_;
    bool shown_ = false;
    std::chrono::steady_clock::time_point start_;
};

}  // namespace kvjit::tool
