#include "engine.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <string_view>

#include "log.h"
#include "run_watch.h"

namespace kvjit::rt {

bool Engine::Key::operator==(const Key& other) const {
    return targets == other.targets && std::memcmp(&spec, &other.spec, sizeof spec) == 0;
}

std::size_t Engine::Hash::operator()(const Key& key) const {
    const std::string_view bytes(reinterpret_cast<const char*>(&key.spec), sizeof key.spec);
    return std::hash<std::string_view>{}(bytes) ^ std::hash<const void*>{}(key.targets);
}

Engine::Engine(EngineOptions options)
    : images_(std::make_shared<Images>(std::move(options.images))),
      max_idle_kernels_(options.max_idle_kernels),
      bundle_key_(options.bundle_key) {}

Engine::~Engine() {
    try {
        log_counts();
    } catch (...) {  // no memory, or the program's log threw: what is said of runs must not end the process
        return;
    }
}

void Engine::log_counts() const {
    if (!images_->log().takes(KVJIT_LOG_INFO)) return;
    for (const auto& [kernel, stats] : counted_runs()) {
        LogLine line = line_about("counted", *kernel);
        line.add("runs", stats.runs)
            .add_ms(stats.seconds)
            .add("bytes", stats.bytes)
            .add("operations", stats.operations);
        images_->log()(KVJIT_LOG_INFO, line.text());
    }
}

gen::Result<void> Engine::add_bundle(std::string name, std::string place,
                                     std::expected<std::unique_ptr<BundleBytes>, std::string> bytes) {
    auto bundle = open_bundle(std::move(bytes), {std::move(name), std::move(place), bundle_key_, images_->log()});
    if (!bundle) return std::unexpected(bundle.error());
    add_bundle(*std::move(bundle));
    return {};
}

KernelPtr Engine::known(const Key& key) {
    const std::shared_lock lock(mutex_);
    const auto it = kernels_.find(key);
    if (it == kernels_.end()) return nullptr;
    // Written only if it changes, so that lookups on other cores keep their copy of the cache line.
    if (!it->second.is_recent.load(std::memory_order_relaxed)) it->second.is_recent = true;
    return it->second.kernel;
}

gen::Result<KernelPtr> Engine::kernel(const gen::KernelSpec& spec, const gen::TargetList& targets) {
    const Key key{spec, &targets};
    if (KernelPtr kernel = known(key)) return kernel;
    gen::Result<KernelPtr> made = Kernel::make(images_, spec, targets);
    if (!made) return made;
    KernelPtr kernel;
    std::vector<KernelPtr> idle;
    {
        const std::unique_lock lock(mutex_);
        Entry& entry = kernels_[key];
        if (!entry.kernel) entry.kernel = *std::move(made);  // else another thread was first
        kernel = entry.kernel;
        idle = take_idle(max_idle_kernels_);
    }
    drop(std::move(idle));
    return kernel;
}

std::size_t Engine::trim() {
    std::vector<KernelPtr> idle;
    {
        const std::unique_lock lock(mutex_);
        idle = take_idle(0);
    }
    return drop(std::move(idle));
}

std::vector<Engine::CountedRuns> Engine::counted_runs() const {
    std::vector<CountedRuns> all;
    {
        const std::shared_lock lock(mutex_);
        for (const auto& [key, entry] : kernels_) all.push_back({entry.kernel, entry.kernel->run_counts().stats()});
    }
    std::erase_if(all, [](const CountedRuns& counted) { return counted.stats.runs == 0; });
    std::ranges::sort(all, std::greater<>(), [](const CountedRuns& counted) { return counted.stats.seconds; });
    return all;
}

std::vector<KernelPtr> Engine::take_idle(std::size_t most_left) {
    // A kernel with no other owner could get one only through the registry, which is locked.
    const auto is_idle = [](const auto& entry) { return entry.second.kernel.use_count() == 1; };
    std::size_t idle = static_cast<std::size_t>(std::ranges::count_if(kernels_, is_idle));
    std::vector<KernelPtr> taken;
    taken.reserve(idle);  // before anything leaves the registry
    // First those not requested again since room was last made, then any.
    for (int round = 0; round < 2 && idle > most_left; ++round) {
        for (auto it = kernels_.begin(); it != kernels_.end() && idle > most_left;) {
            if (is_idle(*it) && !it->second.is_recent.exchange(false)) {
                taken.push_back(std::move(it->second.kernel));
                it = kernels_.erase(it);
                --idle;
            } else {
                ++it;
            }
        }
    }
    return taken;
}

std::size_t Engine::drop(std::vector<KernelPtr> kernels) {
    const std::size_t count = kernels.size();
    if (count == 0) return 0;
    kernels.clear();
    images_->sweep();
    return count;
}

}  // namespace kvjit::rt
