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

bool Recording::has_room(std::int64_t bytes) {
    const auto refuse = [&](const std::string& why) {
        skip(Obstacle::kLimit, why);
        return false;
    };
    if (bytes > setting_.max_bytes) {
        return refuse(text("its file would have ", bytes, " bytes, max_bytes is ", setting_.max_bytes));
    }
    if (files_.fetch_add(1) >= setting_.max_files) {
        ended_ = true;
        return refuse(text("max_files, ", setting_.max_files, ", are written; nothing more is recorded"));
    }
    if (bytes_.fetch_add(bytes) > setting_.max_bytes - bytes) {
        bytes_ -= bytes;
        --files_;
        return refuse(text("its file of ", bytes, " bytes and those before would have more than max_bytes, ",
                           setting_.max_bytes));
    }
    return true;
}

void Recording::write(const gen::KernelSpec& spec, std::string_view bytes) {
    const std::string name = file_name(spec);
    const CachePlace place{.path = setting_.folder, .home = "", .called = "the folder", .follows_link = false};
    const auto folder = CacheFolder::open(system_calls(), place);
    if (folder && !swept_.exchange(true)) remove_abandoned(*folder);
    const auto written = folder ? folder->write(name, bytes) : std::unexpected(folder.error());
    if (written) return log_(KVJIT_LOG_INFO, text("recorded a call: ", setting_.folder, "/", name));
    ended_ = true;
    skip(Obstacle::kFolder, written.error() + "; nothing more is recorded");
}

void Recording::skip(Obstacle obstacle, const std::string& why) {
    if (said_[static_cast<std::size_t>(obstacle)].exchange(true)) return;
    log_(KVJIT_LOG_WARNING, "a call was not recorded: " + why);
}

gen::Result<void> Recorder::set(std::string_view setting) {
    if (setting.empty()) {
        current_ = nullptr;
        return {};
    }
    gen::Result<RecordSetting> parsed = parse_record_setting(setting);
    if (!parsed) return std::unexpected(parsed.error());
    const std::lock_guard lock(mutex_);
    all_.push_back(std::make_unique<Recording>(*std::move(parsed), log_));
    current_.store(all_.back().get(), std::memory_order_release);
    return {};
}

}  // namespace kvjit::rt
