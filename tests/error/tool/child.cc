#include "child.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace kvjit::test {
namespace {

constexpr unsigned kMaxSeconds = 120;

std::string temporary_file(const char* stem) {
    std::string name = std::string("/tmp/kvjit-") + stem + "-XXXXXX";
    const int file = mkstemp(name.data());
    if (file >= 0) close(file);
    return name;
}

std::string take_contents(const std::string& path) {
    std::stringstream contents;
    contents << std::ifstream(path).rdbuf();
    std::remove(path.c_str());
    return contents.str();
}

void redirect(int stream, const char* path, int mode = O_WRONLY | O_TRUNC) {
    const int file = open(path, mode);
    if (file >= 0) dup2(file, stream);
}

/// Its other end stays open in the command, and is read by nobody.
void redirect_to_terminal() {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) _exit(126);
    redirect(STDOUT_FILENO, ptsname(terminal), O_WRONLY | O_NOCTTY);
}

void arrange_output(Output output, const std::string& path) {
    int ends[2];
    switch (output) {
        case Output::kCaptured:
            return redirect(STDOUT_FILENO, path.c_str());
        case Output::kFull:
            return redirect(STDOUT_FILENO, "/dev/full");
        case Output::kClosed:
            close(STDOUT_FILENO);
            return;
        case Output::kBrokenPipe:
            if (pipe(ends) != 0) return;
            dup2(ends[1], STDOUT_FILENO);
            close(ends[0]);
            close(ends[1]);
            return;
        case Output::kTerminal:
            return redirect_to_terminal();
    }
}

[[noreturn]] void become_kvjit(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    std::string name = KVJIT_TOOL;
    argv.push_back(name.data());
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    alarm(kMaxSeconds);  // execv keeps it: a command that hangs ends as one that a signal killed
    execv(KVJIT_TOOL, argv.data());
    _exit(127);
}

}  // namespace

bool has_terminals() {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) return false;
    const char* name = grantpt(terminal) == 0 && unlockpt(terminal) == 0 ? ptsname(terminal) : nullptr;
    const bool usable = name != nullptr && access(name, R_OK | W_OK) == 0;
    close(terminal);
    return usable;
}

ChildResult run_kvjit(const std::vector<std::string>& arguments, Output output, const std::string& input) {
    const std::string out = temporary_file("out");
    const std::string err = temporary_file("err");
    const pid_t child = fork();
    if (child == 0) {
        redirect(STDIN_FILENO, input.c_str(), O_RDONLY);
        redirect(STDERR_FILENO, err.c_str());
        arrange_output(output, out);
        become_kvjit(arguments);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ChildResult result;
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    result.out = take_contents(out);
    result.err = take_contents(err);
    return result;
}

nlohmann::json json_of(const std::vector<std::string>& arguments) {
    const ChildResult shown = run_kvjit(arguments);
    CHECK_MESSAGE(shown.err.empty(), shown.err);
    return nlohmann::json::parse(shown.out);
}

Variable::Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
}

Variable::~Variable() {
    before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_);
}

bool has_control_characters(const std::string& text) {
    return std::ranges::any_of(text, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; });
}

}  // namespace kvjit::test
