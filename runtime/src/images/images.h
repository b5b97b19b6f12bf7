// From a program to a loaded image: memory, the stores in their order, the compiler.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "images/image.h"
#include "images/store.h"
#include "images/wanted.h"
#include "log.h"
#include "spec_trace.h"

namespace kvjit::rt {

/// The spec's canonical text and the program's name.
using LateCompile = std::function<void(const std::string& spec, const std::string& program)>;

struct ImagesOptions {
    bool jit = true;
    Backends backends;
    std::unique_ptr<Cache> disk;  // null: none
    gen::TemplateReader templates;
    Log log;
    LateCompile on_late_compile = nullptr;       // empty: nobody listens
    std::shared_ptr<SpecTrace> trace = nullptr;  // null: none
};

/// An entry with all that names it.
struct MadeEntry {
    EntryKey key;  // names its maker
    Entry entry;
};

/// Where an image's bytes are from.
struct Origin {
    kvjit_origin kind;   // not KVJIT_ORIGIN_NONE
    const Store* store;  // null: this engine's compiler. Lives as long as the Images
    StoredEntry stored;  // compiled: no place, and the object's digest
    std::size_t object_bytes;
    std::string log;  // compiled: what the compiler said; stores keep it themselves
};
using OriginPtr = std::shared_ptr<const Origin>;

/// Thread-safe. Holds images weakly: those that neither a kernel nor a plan holds are gone.
class Images {
public:
    explicit Images(ImagesOptions options);
    ~Images();

    /// A store that was shipped with the program: asked before the disk cache, behind those that were added before.
    void add_bundle(std::shared_ptr<Store> bundle);

    struct Found {
        std::size_t which;  // of the candidates
        ImagePtr image;     // null: not loaded
        OriginPtr origin;
    };
    /// The image of a candidate that memory or a store has; nothing if none has any. Candidates stand best first and
    /// are of one backend. Who is asked, in this order (docs/bundles.md):
    ///   1. memory        for the first candidate
    ///   2. bundles       for each candidate in turn, in the order in which they were added
    ///   3. disk cache    where there is a compiler, memory and then the cache for what it would make: the first
    ///                    candidate, or, if it doesn't know that one, what it knows of it (known_target); else for all
    ///   4. memory        for the others, where there is no compiler
    /// Errors: what the machine can't run; without compiling, what keeps a store from answering.
    gen::Result<std::optional<Found>> find(std::span<const Candidate> candidates);

    /// What find would give, for any target: loads nothing and counts nothing.
    gen::Result<std::optional<Found>> locate(std::span<const Candidate> candidates);

    /// Of an image that is loaded. Null: none of this identity is.
    OriginPtr origin(const std::string& identity);

    /// The image of one candidate that find had nothing for, from the compiler. One compile an identity, however many
    /// threads and processes ask; those who waited for a failing one get its error. Errors: KVJIT_NOT_FOUND without
    /// compiling, with what bundles have of the same program.
    gen::Result<ImagePtr> make(const Candidate& candidate);

    /// What an image is made of, from the disk cache or the compiler, which then publishes it there. Of any target:
    /// nothing is loaded. Each call compiles for itself what is not there.
    gen::Result<MadeEntry> entry(const Candidate& candidate);

    /// What a stage (KVJIT_STAGE_*) holds for the image of this origin, or, where that is null, for the one that would
    /// be compiled. See kvjit_kernel_emit.
    gen::Result<std::string> emit(const Candidate& candidate, const OriginPtr& origin, kvjit_stage stage);

    /// See Compiler::known_target. Without compiling no compiler is asked: it would be opened to answer.
    gen::Target known_target(const gen::Target& target) const;
    /// Errors: KVJIT_BAD_TARGET where this build has none for it.
    gen::Result<Backend*> backend(const gen::Target& target) const;
    const Log& log() const { return options_.log; }
    /// Null: nobody wants to know what is asked for.
    SpecTrace* trace() const { return options_.trace.get(); }
    /// See kvjit_engine_seal.
    void seal() { sealed_ = true; }
    /// Forgets the names of images that are gone.
    void sweep();
    kvjit_engine_stats stats() const;

private:
    struct Cell;
    struct Search;
    /// Of one kind of stores.
    struct Tally {
        const kvjit_origin kind;
        std::atomic<std::int64_t> hits{0};
        std::atomic<double> seconds{0};
    };

    gen::Result<Wanted> wanted(const Candidate& candidate) const;
    bool compiles(Compiler& compiler) const;
    std::shared_ptr<Cell> cell(const std::string& identity);
    ImagePtr in_memory(const std::string& identity);
    std::optional<Found> in_memory(std::span<Wanted> wanted, std::size_t which, const Search& search);
    /// Another thread's image, if it was first.
    ImagePtr keep(const std::string& identity, ImagePtr image, OriginPtr origin);
    std::vector<std::shared_ptr<Store>> bundles() const;
    /// In the order of find. The next four hand out nothing, and no error, where a store can't say or has what doesn't
    /// load: the search then has the first such error.
    gen::Result<std::optional<Found>> look(std::span<const Candidate> candidates, Search& search);
    gen::Result<std::optional<Found>> what_was_made(std::span<Wanted> wanted, Search& search);
    gen::Result<std::optional<Found>> from_bundles(std::span<Wanted> wanted, Search& search);
    gen::Result<std::optional<Found>> from_disk(std::span<Wanted> wanted, Search& search);
    gen::Result<std::optional<Found>> ask(Store& store, std::span<Wanted> wanted, Tally& tally, Search& search);
    gen::Error not_found(const Wanted& wanted) const;
    std::unique_ptr<Cache::Guard> lock(Wanted& wanted);
    void publish(Wanted& wanted, const Entry& entry);
    gen::Result<ImagePtr> produce(Wanted& wanted);
    gen::Result<Entry> compile(Wanted& wanted);
    void tell_late(const Wanted& wanted);
    gen::Result<ImagePtr> load(const Wanted& wanted, std::string_view object);
    gen::Result<std::string> identity_of(Wanted& wanted, const Origin* origin);
    gen::Result<std::string> source_of(Wanted& wanted, const Origin* origin);
    gen::Result<CompileOutput> compile_to_show(const Wanted& wanted, const std::string& source, CompileStage stage);

    ImagesOptions options_;
    std::mutex cells_mutex_;
    std::map<std::string, std::shared_ptr<Cell>, std::less<>> cells_;

    mutable std::mutex bundles_mutex_;
    std::vector<std::shared_ptr<Store>> bundles_;

    std::atomic<bool> sealed_{false};
    std::atomic<std::int64_t> compiles_{0}, late_compiles_{0}, memory_hits_{0};
    std::atomic<double> compile_seconds_{0};
    Tally of_bundles_{KVJIT_ORIGIN_BUNDLE}, of_disk_{KVJIT_ORIGIN_DISK};
};

}  // namespace kvjit::rt
