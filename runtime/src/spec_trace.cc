#include "spec_trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "check/fault.h"

namespace kvjit::rt {
namespace {

/// Lines that this process, or the one that it was forked from, knows to be in their files.
struct Written {
    std::mutex mutex;
    std::set<std::pair<std::string, std::string>> lines;  // path, line
};

/// Locks a file against other processes that trace to it. A file that can't be locked, a pipe, is written to anyway.
class Turn {
public:
    explicit Turn(int file) : file_(file) {
        while (flock(file_, LOCK_EX) != 0 && errno == EINTR) continue;
    }
    ~Turn() { flock(file_, LOCK_UN); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    int file_;
};

/// Returns 0 or an errno; `rest` is what has not been written.
int write_all(int file, std::string_view& rest) {
    while (!rest.empty()) {
        const ssize_t put = write(file, rest.data(), rest.size());
        if (put == 0) return ENOSPC;
        if (put < 0 && errno != EINTR) return errno;
        if (put > 0) rest.remove_prefix(static_cast<std::size_t>(put));
    }
    return 0;
}

/// Appends the whole line, or nothing: the next line would be joined to a partial one. Returns 0 or an errno.
int append(int file, const std::string& line) {
    const Turn turn(file);
    const off_t begin = lseek(file, 0, SEEK_END);
    std::string_view rest = line;
    const int error = write_all(file, rest);
    const off_t end = begin + static_cast<off_t>(line.size() - rest.size());
    const bool is_last = begin >= 0 && lseek(file, 0, SEEK_END) == end;  // others may append without a lock
    if (error != 0 && end != begin && is_last && ftruncate(file, begin) != 0) return errno;
    return error;
}

}  // namespace

std::string target_option(const gen::Target& target) {
    if (target.backend != gen::Backend::kCudaEmulated) return target.name();
    return target.wgmma ? "cuda-emulated+wgmma" : "cuda-emulated";
}

SpecTrace::SpecTrace(std::string path, Log log)
    : path_(std::move(path)),
      log_(std::move(log)),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    if (file_ < 0) give_up(errno);
}

SpecTrace::~SpecTrace() {
    if (file_ >= 0) close(file_);
}

void SpecTrace::add(const gen::KernelSpec& spec, const gen::Target& target, const gen::ProgramInfo& program) {
    if (gave_up_) return;
    const std::string line =
        text(gen::print_spec(spec), "  # target=", target_option(target), " program=", program.label, "\n");
    if (const int error = write_once(line)) give_up(error);
}

int SpecTrace::write_once(const std::string& line) {
    static auto& all = *new Written;  // never destroyed: at the process's end threads may still request kernels
    const std::lock_guard lock(all.mutex);
    const auto [at, is_new] = all.lines.emplace(path_, line);
    if (!is_new) return 0;
    const int error = append(file_, line);
    if (error != 0) all.lines.erase(at);
    return error;
}

void SpecTrace::give_up(int error) {
    if (gave_up_.exchange(true)) return;
    log_(KVJIT_LOG_WARNING,
         text("specs are not traced: ", path_, " can't be written: ", std::generic_category().message(error)));
}

}  // namespace kvjit::rt
