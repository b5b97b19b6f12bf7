// kvjit.hpp under -fno-exceptions: errors are values as ever, and value() of a failure ends the process by SIGABRT.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "kvjit/kvjit.hpp"

int main() {
    const auto right = kvjit::KernelSpec::parse("head_dim=64");
    const auto refused = kvjit::KernelSpec::parse("head_dim=65");
    if (!right || right.value().head_dim != 64) return std::puts("head_dim=64 is refused"), 1;
    if (refused || refused.error().status() != KVJIT_BAD_SPEC) return std::puts("head_dim=65 is taken"), 1;
    const pid_t child = fork();
    if (child == 0) _exit(refused.value().head_dim != 0 ? 2 : 3);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return std::puts("no child"), 1;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) return std::printf("value() ends with %d\n", status), 1;
    return 0;
}
