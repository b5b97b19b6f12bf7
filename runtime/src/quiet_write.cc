#include "quiet_write.h"

#include <unistd.h>
#include <csignal>
#include <ctime>

#include <cerrno>

namespace kvjit::rt {
namespace {

/// Blocks a write's signals while it lives, and takes away those that were sent meanwhile. They are sent to the thread
/// that writes, so that no other thread's is taken.
class WriteSignalsBlocked {
public:
    WriteSignalsBlocked() {
        sigemptyset(&signals_);
        sigset_t pending;
        sigpending(&pending);
        for (const int signal : {SIGPIPE, SIGXFSZ}) {
            if (sigismember(&pending, signal) == 0) sigaddset(&signals_, signal);  // else it is blocked, and not ours
        }
        pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    }
    ~WriteSignalsBlocked() {
        const timespec now{};
        while (sigtimedwait(&signals_, nullptr, &now) >= 0 || errno == EINTR) continue;
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;
    WriteSignalsBlocked& operator=(const WriteSignalsBlocked&) = delete;

private:
    sigset_t signals_;
    sigset_t before_;
};

}  // namespace

int write_quietly(int file, std::string_view& rest) {
    const WriteSignalsBlocked blocked;
    while (!rest.empty()) {
        const ssize_t put = write(file, rest.data(), rest.size());
        if (put == 0) return -ENOSPC;
        if (put < 0 && errno != EINTR) return -errno;
        if (put > 0) rest.remove_prefix(static_cast<std::size_t>(put));
    }
    return 0;
}

}  // namespace kvjit::rt
