// The engine: a registry of kernels over one set of images.
#pragma once

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "bundle/bundle_store.h"
#include "images/images.h"
#include "kernel.h"

namespace kvjit::rt {

struct EngineOptions {
    ImagesOptions images;
    std::size_t max_idle_kernels = 0;          // idle kernels that stay for the next request
    std::optional<PublicKey> bundle_key = {};  // the key that must have signed bundles; nothing: any key or none
};

/// Thread-safe. Kernels and plans live on without it.
class Engine {
public:
    explicit Engine(EngineOptions options);
    /// Counted runs go to the log.
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// The kernel for a spec, made at the first request. `targets` are interned (targets.h). Errors: Kernel::make's.
    gen::Result<KernelPtr> kernel(const gen::KernelSpec& spec, const gen::TargetList& targets);

    /// See kvjit_engine_explain. Errors, besides `served`'s: a bad spec, or programs that the op lacks.
    gen::Result<Explanation> explain(const gen::KernelSpec& spec, const gen::TargetList& targets,
                                     std::uint32_t programs) const {
        return explain_kernel(*images_, spec, targets, programs);
    }

    /// See kvjit_engine_add_bundle. `name`: in messages; `place`: its file. Errors: KVJIT_BAD_FILE.
    gen::Result<void> add_bundle(std::string name, std::string place,
                                 std::expected<std::unique_ptr<BundleBytes>, std::string> bytes);
    /// Adds an open bundle, to be searched after those that were added before.
    void add_bundle(std::shared_ptr<Store> bundle) { images_->add_bundle(std::move(bundle)); }

    /// Drops the idle kernels, and the images that no other kernel or plan has. Returns the number of kernels.
    std::size_t trim();

    /// See kvjit_engine_record. Errors: parse_record_setting's.
    gen::Result<void> record(std::string_view setting) { return images_->recorder()->set(setting, "setting"); }

    /// See kvjit_engine_seal.
    void seal() { images_->seal(); }

    kvjit_engine_stats stats() const { return images_->stats(); }

    /// What the runs of a kernel came to.
    struct CountedRuns {
        KernelPtr kernel;
        kvjit_run_stats stats;
    };
    /// Of the registry's kernels that have run, the one that took most time first.
    std::vector<CountedRuns> counted_runs() const;

private:
    void log_counts() const;

    struct Key {
        gen::KernelSpec spec;
        const gen::TargetList* targets;
        bool operator==(const Key& other) const;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };
    struct Entry {
        KernelPtr kernel;
        std::atomic<bool> is_recent{false};  // requested again since the last eviction
    };

    KernelPtr known(const Key& key);
    /// Takes idle kernels out of the registry until `most_left` are left. The caller holds mutex_ exclusively, and
    /// destroys the kernels after releasing it.
    std::vector<KernelPtr> take_idle(std::size_t most_left);
    std::size_t drop(std::vector<KernelPtr> kernels);

    std::shared_ptr<Images> images_;
    std::size_t max_idle_kernels_;
    std::optional<PublicKey> bundle_key_;
    mutable std::shared_mutex mutex_;
    std::unordered_map<Key, Entry, Hash> kernels_;
};

}  // namespace kvjit::rt
