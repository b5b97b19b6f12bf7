#include "record/recorder.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "check/fault.h"
#include "disk_cache/cache_folder.h"
#include "disk_cache/prune.h"

namespace kvjit::rt {
namespace {

constexpr const char* kSuffix = ".safetensors";

/// No other process, and no other recording of this one, has a file of this name.
std::string file_name(const gen::KernelSpec& spec) {
    static std::atomic<std::int64_t> count{0};
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    char number[32];
    std::snprintf(number, sizeof number, "%06lld", static_cast<long long>(++count));
    return text(std::chrono::duration_cast<std::chrono::seconds>(now).count(), "-", std::int64_t{::getpid()}, "-",
                number, "-", op_name(spec), kSuffix);
}

constexpr std::size_t kMostNames = 4096;  // of a folder, that are looked at

/// Removes what processes that were killed left while they wrote; files that are being written are locked.
void remove_abandoned(const CacheFolder& folder) {
    const auto names = folder.calls().list(folder.descriptor(), kMostNames);
    if (!names) return;
    for (const std::string& name : *names) {
        if (name.ends_with(kTemporarySuffix) && name.contains(kSuffix)) sweep(folder, name);
    }
}

}  // namespace

bool Recording::takes(const gen::KernelSpec& spec, std::uint32_t programs, std::int64_t layer_idx) {
    if (ended_.load(std::memory_order_relaxed)) return false;
    if (setting_.programs != 0 && (setting_.programs & programs) == 0) return false;
    if (setting_.layer && *setting_.layer != layer_idx) return false;
    if (!setting_.agrees(spec)) return false;
    const std::int64_t number = ++seen_;
    return setting_.call != 0 ? number == setting_.call : (number - 1) % setting_.every == 0;
}

bool Recording::add_within(std::atomic<std::int64_t>& sum, std::int64_t add, std::int64_t limit) {
    std::int64_t before = sum;
    while (before <= limit - add) {
        if (sum.compare_exchange_weak(before, before + add)) return true;
    }
    return false;
}

std::optional<Recording::Room> Recording::reserve(std::int64_t bytes) {
    if (bytes > setting_.max_bytes) {
        skip(Obstacle::kLimit, text("its file would have ", bytes, " bytes, max_bytes is ", setting_.max_bytes));
        return std::nullopt;
    }
    if (!add_within(bytes_, bytes, setting_.max_bytes)) {
        skip(Obstacle::kLimit, text("its file of ", bytes, " bytes and those before would have more than max_bytes, ",
                                    setting_.max_bytes));
        return std::nullopt;
    }
    if (add_within(files_, 1, setting_.max_files)) return Room(*this, bytes);
    bytes_ -= bytes;
    if (written_ < setting_.max_files) {
        skip(Obstacle::kBusy, text("as many others are being recorded as max_files, ", setting_.max_files, ", leaves"));
        return std::nullopt;
    }
    ended_ = true;
    skip(Obstacle::kLimit, text("max_files, ", setting_.max_files, ", are written; nothing more is recorded"));
    return std::nullopt;
}

Recording::Room::~Room() {
    if (recording_ == nullptr) return;
    recording_->bytes_ -= bytes_;
    --recording_->files_;
}

void Recording::Room::write(const gen::KernelSpec& spec, std::string_view bytes) && {
    if (recording_->write(spec, bytes)) recording_ = nullptr;
}

bool Recording::write(const gen::KernelSpec& spec, std::string_view bytes) {
    const std::string name = file_name(spec);
    const CachePlace place{.path = setting_.folder, .home = "", .called = "the folder", .follows_link = false};
    const auto folder = CacheFolder::open(system_calls(), place);
    if (folder && !swept_.exchange(true)) remove_abandoned(*folder);
    const auto written = folder ? folder->write(name, bytes) : std::unexpected(folder.error());
    if (!written) {
        ended_ = true;
        skip(Obstacle::kFolder, written.error() + "; nothing more is recorded");
        return false;
    }
    ++written_;
    log_(KVJIT_LOG_INFO, text("recorded a call: ", setting_.folder, "/", name));
    return true;
}

void Recording::skip(Obstacle obstacle, std::string_view why) noexcept {
    if (said_[static_cast<std::size_t>(obstacle)].exchange(true)) return;
    try {
        log_(KVJIT_LOG_WARNING, text("a call was not recorded: ", why));
    } catch (...) {  // no memory, or the engine's log threw: a call must not fail for what is said of it
        return;
    }
}

gen::Result<void> Recorder::set(std::string_view setting, std::string_view called) {
    if (setting.empty()) {
        current_ = nullptr;
        return {};
    }
    gen::Result<RecordSetting> parsed = parse_record_setting(setting, called);
    if (!parsed) return std::unexpected(parsed.error());
    const std::lock_guard lock(mutex_);
    all_.push_back(std::make_unique<Recording>(*std::move(parsed), log_));
    current_.store(all_.back().get(), std::memory_order_release);
    return {};
}

}  // namespace kvjit::rt
