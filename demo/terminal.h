#pragma once

#include <chrono>
#include <string>

namespace demo {

bool on_terminal();

/// The text in bold, green or red where that can be seen: on a terminal, without NO_COLOR.
std::string bold(const std::string& text);
std::string green(const std::string& text);
std::string red(const std::string& text);

/// A bar that fills while something is done; off a terminal, nothing.
class Progress {
public:
    Progress(std::string title, int total);
    /// Wipes the bar.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(int done, const std::string& note = "");

private:
    std::string title_;
    int total_;
    std::chrono::steady_clock::time_point shown_at_{};
};

}  // namespace demo
