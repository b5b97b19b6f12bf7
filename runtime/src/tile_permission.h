// The system's permission to use AMX's tile registers.
#pragma once

#include <atomic>
#include <expected>
#include <functional>
#include <mutex>
#include <string>

namespace kvjit::rt {

/// Linux permits AMX to a whole process, until it ends. A signal's frame then takes 11 KiB, so the system refuses AMX
/// while a thread has a signal stack that is smaller, and afterwards refuses such stacks. Hence the system is asked
/// only when a program that uses tiles is about to be loaded, and only once: a refusal stays one, since results must
/// not change while a process runs. Thread-safe.
class TilePermission {
public:
    /// Asks the system: 0, or the error as in errno.
    using Request = std::function<int()>;
    enum class State { kUnasked, kGranted, kRefused };

    explicit TilePermission(Request request) : request_(std::move(request)) {}
    /// This process's.
    static TilePermission& of_process();

    /// What is known. Asks nothing.
    State state() const { return state_; }
    /// Asks the system, if nobody has. Errors: why AMX is refused, a clause.
    std::expected<void, std::string> ask();

private:
    Request request_;
    std::once_flag asked_;
    int error_ = 0;
    std::atomic<State> state_ = State::kUnasked;
};

}  // namespace kvjit::rt
