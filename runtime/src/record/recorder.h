// Which calls of an engine are recorded, and where their files go.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "log.h"
#include "record/setting.h"

namespace kvjit::rt {

/// The recordings that one setting leads to. Thread-safe, and takes no lock, so that a forked process may go on.
class Recording {
public:
    Recording(RecordSetting setting, Log log) : setting_(std::move(setting)), log_(std::move(log)) {}

    /// Whether this call is to be recorded, which is counted.
    bool takes(const gen::KernelSpec& spec, std::uint32_t programs, std::int64_t layer_idx);
    /// Counts a file of `bytes`; false: the limits leave no room, which is said once.
    bool has_room(std::int64_t bytes);
    /// Writes a file named after the operator. Failures are said once, and end the recording.
    void write(const gen::KernelSpec& spec, std::string_view bytes);
    /// Says once why calls like this one are not recorded.
    enum class Obstacle { kLimit, kCapture, kCall, kFolder };
    void skip(Obstacle obstacle, const std::string& why);

private:
    RecordSetting setting_;
    Log log_;
    std::atomic<std::int64_t> seen_{0}, files_{0}, bytes_{0};
    std::array<std::atomic<bool>, 4> said_{};  // by Obstacle
    std::atomic<bool> swept_{false}, ended_{false};
};

/// Thread-safe.
class Recorder {
public:
    explicit Recorder(Log log) : log_(std::move(log)) {}

    /// See kvjit_engine_record. Errors: parse_record_setting's.
    gen::Result<void> set(std::string_view setting);
    /// Where the present recording stands; null: nothing is recorded. Both live as long as the recorder.
    const std::atomic<Recording*>& current() const { return current_; }

private:
    Log log_;
    std::mutex mutex_;  // guards what follows
    std::vector<std::unique_ptr<Recording>> all_;
    std::atomic<Recording*> current_{nullptr};
};

}  // namespace kvjit::rt
