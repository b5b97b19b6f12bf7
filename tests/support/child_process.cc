#include "support/child_process.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace kvjit::test {

int in_child(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork");
    if (child == 0) _exit(body());
    int status = 0;
    if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : kBroken;
}

bool limit_address_space(std::size_t more_bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + more_bytes;
    const rlimit limit{bytes, bytes};
    return pages != 0 && setrlimit(RLIMIT_AS, &limit) == 0;
}

}  // namespace kvjit::test
