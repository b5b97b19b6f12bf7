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
    static const bool wanted = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
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

}  // namespace

void prepare_standard_streams() {
    std::signal(SIGPIPE, SIG_IGN);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(stream, F_GETFD) != -1) continue;
        // open takes the lowest free number, which is this one. Read-only, so that writes to it fail and are noticed.
        const int opened = open("/dev/null", O_RDONLY);
        if (opened != stream) close(opened);
    }
}

void print(std::string_view text) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && first_write_error == 0) {
        first_write_error = errno;
    }
}

bool output_is_good() {
    errno = 0;
    const bool flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (flushed && first_write_error == 0) return true;
    if (first_write_error == 0) first_write_error = errno;
    complain(std::string("standard output can't be written: ") +
             (first_write_error ? std::strerror(first_write_error) : "some of it was lost"));
    return false;
}

void complain(std::string_view message) {
    std::fprintf(stderr, "kvjit: %.*s\n", static_cast<int>(message.size()), message.data());
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
