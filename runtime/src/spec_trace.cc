#include "spec_trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "check/fault.h"
#include "quiet_write.h"

namespace kvjit::rt {
namespace {

std::string reason(int error) {
    return "can't be written: " + std::generic_category().message(error);
}

/// Lines that this process, or the one that it was forked from, knows to be in their files.
struct Written {
    std::mutex mutex;
    std::set<std::pair<std::string, std::string>> lines;  // path, line
};

/// A line takes microseconds: whoever holds the file for longer isn't tracing, and kernels don't wait for that.
constexpr std::chrono::milliseconds kLongestTurn{1000}, kBetweenTries{1};

/// Locks a file against other processes that trace to it. A file that can't be locked, a pipe, is written to anyway.
class Turn {
public:
    explicit Turn(int file) : file_(file) {
        const auto end = std::chrono::steady_clock::now() + kLongestTurn;
        while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
            is_anothers_ = errno == EWOULDBLOCK && std::chrono::steady_clock::now() >= end;
            if (is_anothers_ || (errno != EWOULDBLOCK && errno != EINTR)) return;
            std::this_thread::sleep_for(kBetweenTries);
        }
    }
    ~Turn() {
        if (!is_anothers_) flock(file_, LOCK_UN);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// Another process has kept it locked for as long as this one waits.
    bool is_anothers() const { return is_anothers_; }

private:
    int file_;
    bool is_anothers_ = false;
};

/// Appends the whole line, or nothing: the next line would be joined to a partial one. Returns "" or why not.
std::string append(int file, const std::string& line) {
    const Turn turn(file);
    if (turn.is_anothers()) {
        return text("another process has had it locked for ", kLongestTurn.count(), " ms");
    }
    const off_t begin = lseek(file, 0, SEEK_END);
    std::string_view rest = line;
    const int error = -write_quietly(file, rest);
    const off_t end = begin + static_cast<off_t>(line.size() - rest.size());
    const bool is_last = begin >= 0 && lseek(file, 0, SEEK_END) == end;  // others may append without a lock
    if (error != 0 && end != begin && is_last && ftruncate(file, begin) != 0) return reason(errno);
    return error != 0 ? reason(error) : "";
}

}  // namespace

std::string target_option(const gen::Target& target) {
    if (target.backend != gen::Backend::kCudaEmulated) return target.name();
    return target.wgmma ? "cuda-emulated+wgmma" : "cuda-emulated";
}

SpecTrace::SpecTrace(std::string path, Log log)
    : path_(std::move(path)),
      log_(std::move(log)),
      // Nonblocking, for pipes: one that no one reads, or is full, must not stop the engine.
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666)) {
    if (file_ < 0) give_up(reason(errno));
}

SpecTrace::~SpecTrace() {
    if (file_ >= 0) close(file_);
}

void SpecTrace::add(const gen::KernelSpec& spec, const gen::Target& target, const gen::ProgramInfo& program) {
    if (gave_up_) return;
    const std::string line =
        text(gen::print_spec(spec), "  # target=", target_option(target), " program=", program.label, "\n");
    if (const std::string why = write_once(line); !why.empty()) give_up(why);
}

std::string SpecTrace::write_once(const std::string& line) {
    static auto& all = *new Written;  // never destroyed: at the process's end threads may still request kernels
    const std::lock_guard lock(all.mutex);
    const auto [at, is_new] = all.lines.emplace(path_, line);
    if (!is_new) return "";
    std::string why = append(file_, line);
    if (!why.empty()) all.lines.erase(at);
    return why;
}

void SpecTrace::give_up(const std::string& why) {
    if (!gave_up_.exchange(true)) log_(KVJIT_LOG_WARNING, text("specs are not traced: ", path_, " ", why));
}

}  // namespace kvjit::rt
