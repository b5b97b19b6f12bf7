// Runs the `kvjit` command as a child process.
#pragma once

#include <string>
#include <vector>

namespace kvjit::test {

struct ChildResult {
    int exit_code = -1;  // -1: killed by a signal, whose number is in `signal`
    int signal = 0;
    std::string out;
    std::string err;
};

/// Where the child's standard output goes.
enum class Output { kCaptured, kClosed, kFull, kBrokenPipe, kTerminal };

/// `input`: the file that it reads as standard input.
ChildResult run_kvjit(const std::vector<std::string>& arguments, Output output = Output::kCaptured,
                      const std::string& input = "/dev/null");

/// Whether the system gives out pseudo-terminals: Output::kTerminal needs one.
bool has_terminals();

inline bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace kvjit::test
