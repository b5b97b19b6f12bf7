// Runs the `kvjit` command as a child process.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
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

/// What the command prints as JSON; it must say nothing else.
nlohmann::json json_of(const std::vector<std::string>& arguments);

/// An environment variable that the command inherits while this object lives.
class Variable {
public:
    Variable(const char* name, const std::string& value);
    ~Variable();
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_;
};

/// But for line breaks.
bool has_control_characters(const std::string& text);

inline bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace kvjit::test
