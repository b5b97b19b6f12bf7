#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kvjit::tool {
namespace {

int first_write_error = 0;

bool colour_wanted() {
    static const bool wanted = output_is_terminal() && std::getenv("NO_COLOR") == nullptr;
    return wanted;
}

const char* escape(Colour colour) {
    switch (colour) {
        case Colour::kGreen:
            return "\033[32m";
        case Colour::kRed:
            return "\033[31m";
        case Colour::kDim:
            return "\033[2m";
    }
    return "";
}

/// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none, or with a control character. Those
/// are C0, DEL and C1, U+0080 to U+009F, of which terminals take U+009B for ESC [.
std::size_t printable_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return 0;
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
    }
    const int lowest = lead == 0xc2 || lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;  // less is C1, or overlong
    return byte(1) < lowest ? 0 : bytes;
}

std::string escaped_but_for(std::string_view kept, std::string_view text) {
    std::string out;
    while (!text.empty()) {
        std::size_t bytes = printable_bytes(text);
        if (bytes != 0 || kept.contains(text.front())) {
            bytes = std::max<std::size_t>(bytes, 1);
            out += text.substr(0, bytes);
        } else {
            char code[5];
            std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
            out += code;
            bytes = 1;
        }
        text.remove_prefix(bytes);
    }
    return out;
}

void flush_output() {
    errno = 0;
    if (std::fflush(stdout) != 0 && first_write_error == 0) first_write_error = errno;
}

}  // namespace

std::string escaped(std::string_view text) {
    return escaped_but_for("", text);
}

std::string escaped_lines(std::string_view text) {
    return escaped_but_for("\n\t", text);
}

std::string in_quotes(std::string_view text) {
    constexpr std::size_t kMaxQuoted = 100;  // bytes of a text that an error repeats
    if (text.size() <= kMaxQuoted) return "'" + escaped(text) + "'";
    std::size_t shown = kMaxQuoted;
    const auto continues = [&] { return (static_cast<unsigned char>(text[shown]) & 0xc0) == 0x80; };
    while (continues() && shown > kMaxQuoted - 4) --shown;  // a character stays whole
    return "'" + escaped(text.substr(0, shown)) + "...', " + std::to_string(text.size()) + " bytes";
}

void prepare_standard_streams() {
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGXFSZ, SIG_IGN);  // a write beyond ulimit -f fails, and is told, as one to a full disk
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(stream, F_GETFD) != -1) continue;
        // open takes the lowest free number, which is this one. Read-only, so that writes to it fail and are noticed.
        const int opened = open("/dev/null", O_RDONLY);
        if (opened != stream) close(opened);
    }
}

bool output_is_terminal() {
    return isatty(STDOUT_FILENO) == 1;
}

void print(std::string_view text) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && first_write_error == 0) {
        first_write_error = errno;
    }
}

bool output_is_good() {
    flush_output();
    if (std::ferror(stdout) == 0 && first_write_error == 0) return true;
    complain(std::string("standard output can't be written: ") +
             (first_write_error ? std::strerror(first_write_error) : "some of it was lost"));
    return false;
}

void complain(std::string_view message) {
    flush_output();  // keeps the order where both go to one place; a failure is reported at the end
    std::fprintf(stderr, "kvjit: %s\n", escaped_lines(message).c_str());
}

std::string coloured(std::string_view text, Colour colour) {
    if (!colour_wanted()) return std::string(text);
    return escape(colour) + std::string(text) + "\033[0m";
}

Progress::Progress(std::int64_t total)
    : total_(total), on_terminal_(isatty(STDERR_FILENO) == 1), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
    clear();
}

void Progress::advance(std::string_view what) {
    ++done_;
    if (!on_terminal_ || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
    constexpr std::int64_t kWidth = 24;
    const auto filled = static_cast<std::size_t>(done_ * kWidth / std::max<std::int64_t>(total_, 1));
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::fprintf(stderr, "\r\033[K[%s] %lld/%lld %.*s", bar.c_str(), static_cast<long long>(done_),
                 static_cast<long long>(total_), static_cast<int>(std::min<std::size_t>(what.size(), 40)), what.data());
    std::fflush(stderr);
    shown_ = true;
}

void Progress::clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
}

}  // namespace kvjit::tool
