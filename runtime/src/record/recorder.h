// Which calls of an engine are recorded, and where their files go.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

    /// A file that counts towards the limits as long as this lives, and for good once it is written.
    class Room {
    public:
        Room(Recording& recording, std::int64_t bytes) : recording_(&recording), bytes_(bytes) {}
        Room(Room&& other) noexcept : recording_(std::exchange(other.recording_, nullptr)), bytes_(other.bytes_) {}
        Room& operator=(Room&&) = delete;
        ~Room();
        /// Writes the file, named after the operator. Failures are said once, and end the recording.
        void write(const gen::KernelSpec& spec, std::string_view bytes) &&;

    private:
        Recording* recording_;  // null: nothing is to be given back
        std::int64_t bytes_;
    };
    /// Nothing: the limits leave no room, which is said once.
    std::optional<Room> reserve(std::int64_t bytes);

    /// Says once why calls like this one are not recorded.
    enum class Obstacle { kLimit, kBusy, kCapture, kCall, kFolder };
    void skip(Obstacle obstacle, std::string_view why) noexcept;

private:
    bool write(const gen::KernelSpec& spec, std::string_view bytes);
    /// Adds `add` to `sum` unless it passes `limit` then.
    static bool add_within(std::atomic<std::int64_t>& sum, std::int64_t add, std::int64_t limit);

    RecordSetting setting_;
    Log log_;
    std::atomic<std::int64_t> seen_{0}, files_{0}, bytes_{0}, written_{0};
    std::array<std::atomic<bool>, 5> said_{};  // by Obstacle
    std::atomic<bool> swept_{false}, ended_{false};
};

/// Thread-safe.
class Recorder {
public:
    explicit Recorder(Log log) : log_(std::move(log)) {}

    /// See kvjit_engine_record. `called`: as errors call the setting. Errors: parse_record_setting's.
    gen::Result<void> set(std::string_view setting, std::string_view called = "record");
    /// Where the present recording stands; null: nothing is recorded. Both live as long as the recorder.
    const std::atomic<Recording*>& current() const { return current_; }

private:
    Log log_;
    std::mutex mutex_;  // guards what follows
    std::vector<std::unique_ptr<Recording>> all_;
    std::atomic<Recording*> current_{nullptr};
};

}  // namespace kvjit::rt
