#include "terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace demo {
namespace {

constexpr int kBarWidth = 30;
constexpr auto kRedraw = std::chrono::milliseconds(50);

bool in_colour() {
    const char* off = std::getenv("NO_COLOR");
    return on_terminal() && (off == nullptr || *off == '\0');
}

std::string styled(const char* code, const std::string& text) {
    return in_colour() ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
}

}  // namespace

bool on_terminal() {
    static const bool answer = ::isatty(STDOUT_FILENO) != 0;
    return answer;
}

std::string bold(const std::string& text) {
    return styled("1", text);
}
std::string green(const std::string& text) {
    return styled("32", text);
}
std::string red(const std::string& text) {
    return styled("31", text);
}

Progress::Progress(std::string title, int total) : title_(std::move(title)), total_(total) {}

Progress::~Progress() {
    if (on_terminal()) std::printf("\r\033[K");
}

void Progress::show(int done, const std::string& note) {
    if (!on_terminal()) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_at_ < kRedraw && done != total_) return;
    shown_at_ = now;
    const int full = kBarWidth * done / total_;
    std::printf("\r\033[K  %s [%s%s] %d/%d %s", title_.c_str(), std::string(full, '#').c_str(),
                std::string(kBarWidth - full, '.').c_str(), done, total_, note.c_str());
    std::fflush(stdout);
}

}  // namespace demo
