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
#include "record/recorder.h"
#include "spec_trace.h"
#include "tile_permission.h"

namespace kvjit::rt {

/// Called with the spec's canonical text and the program's name.
using LateCompile = std::function<void(const std::string& spec, const std::string& program)>;

struct ImagesOptions {
    bool jit = true;
    Backends backends;
    std::unique_ptr<Cache> disk;  // null: none
    gen::Templates templates;
    Log log = {};
    LateCompile on_late_compile = nullptr;         // may be empty
    std::shared_ptr<SpecTrace> trace = nullptr;    // null: none
    std::shared_ptr<Recorder> recorder = nullptr;  // of the engine's calls; null: none
    bool count_runs = false;
    TilePermission* tiles = &TilePermission::of_process();  // null: the engine's options forbid AMX
};

/// An entry with its key and provenance.
struct MadeEntry {
    EntryKey key;  // has a maker
    Entry entry;
};

/// The origin of an image's bytes.
struct Origin {
    kvjit_origin kind;   // not KVJIT_ORIGIN_NONE
    const Store* store;  // null: this engine's compiler. Lives as long as the Images
    StoredEntry stored;  // compiled: no place, and the object's digest
    std::size_t object_bytes;
    std::string log;  // compiled: the compiler's log; stores keep their own
};
using OriginPtr = std::shared_ptr<const Origin>;

/// Thread-safe. Holds images weakly: those without a kernel or plan are freed.
class Images {
public:
    explicit Images(ImagesOptions options);
    ~Images();

    /// Adds a store shipped with the program, searched before the disk cache and after the bundles added before.
    void add_bundle(std::shared_ptr<Store> bundle);

    struct Found {
        std::size_t which;  // index of the candidate
        ImagePtr image;     // null: not loaded
        OriginPtr origin;
    };
    /// Finds the image of a candidate in memory or a store; nullopt if there is none. Candidates are sorted, best
    /// first, and are of one backend. The order of the search (docs/bundles.md):
    ///   1. memory        for the first candidate
    ///   2. bundles       for each candidate in turn, in the order in which they were added
    ///   3. disk cache    with a compiler: memory, then the cache, for what it would make, which is the first candidate
    ///                    or the compiler's known_target of it; without one: the cache for all candidates
    ///   4. memory        for the others, if there is no compiler
    /// Errors: the machine can't run the target; permit_tiles' for an image that uses tiles; without compiling, the
    /// error of a store that can't answer.
    gen::Result<std::optional<Found>> find(std::span<const Candidate> candidates);

    /// As find, for any target: loads nothing and counts nothing.
    gen::Result<std::optional<Found>> locate(std::span<const Candidate> candidates);

    /// The origin of a loaded image. Null: no image of this identity is loaded.
    OriginPtr origin(const std::string& identity);

    /// Compiles the image of a candidate that find has not found. Each identity is compiled once, however many threads
    /// and processes request it; those who wait for a failing compile get its error. Errors: permit_tiles';
    /// KVJIT_NOT_FOUND without compiling, with what bundles have of the same program.
    gen::Result<ImagePtr> make(const Candidate& candidate);

    /// The entry of an image, from the disk cache or the compiler, which then publishes it there. For any target:
    /// nothing is loaded. Calls don't share compiles.
    gen::Result<MadeEntry> entry(const Candidate& candidate);

    /// The text of a stage (KVJIT_STAGE_*) for the image of this origin; null: for the image that would be compiled.
    /// See kvjit_kernel_emit.
    gen::Result<std::string> emit(const Candidate& candidate, const OriginPtr& origin, kvjit_stage stage);

    /// See Compiler::known_target. Without compiling, `target`: the compiler would have to be opened.
    gen::Target known_target(const gen::Target& target) const;
    /// Errors: KVJIT_BAD_TARGET if this build has none for the target.
    gen::Result<Backend*> backend(const gen::Target& target) const;
    /// Whether programs that use AMX's tiles may be loaded, as far as that is known.
    TilePermission::State tiles() const;
    /// Asks for the permission to load programs that use AMX's tiles. The first refusal is logged. Errors: the machine
    /// can't run the target; KVJIT_BAD_TARGET with why AMX is refused.
    gen::Result<void> permit_tiles(const gen::Target& target);
    const Log& log() const { return options_.log; }
    /// Null: specs are not traced.
    SpecTrace* trace() const { return options_.trace.get(); }
    /// Null: calls can't be recorded.
    const std::shared_ptr<Recorder>& recorder() const { return options_.recorder; }
    bool counts_runs() const { return options_.count_runs; }
    /// See kvjit_engine_seal.
    void seal() { sealed_ = true; }
    /// Forgets the names of images that are gone.
    void sweep();
    kvjit_engine_stats stats() const;

private:
    struct Cell;
    struct Search;
    /// Counts of one kind of stores.
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
    /// Stores the image, or returns another thread's if that was first.
    ImagePtr keep(const std::string& identity, ImagePtr image, OriginPtr origin);
    std::vector<std::shared_ptr<Store>> bundles() const;
    /// Called in the order of find. The next four return neither an image nor an error if a store can't answer or its
    /// entry doesn't load: the search then has the first such error.
    gen::Result<std::optional<Found>> look(std::span<const Candidate> candidates, Search& search);
    gen::Result<std::optional<Found>> what_was_made(std::span<Wanted> wanted, Search& search);
    gen::Result<std::optional<Found>> from_bundles(std::span<Wanted> wanted, Search& search);
    gen::Result<std::optional<Found>> from_disk(std::span<Wanted> wanted, Search& search);
    gen::Result<std::optional<Found>> ask(Store& store, std::span<Wanted> wanted, Tally& tally, Search& search);
    gen::Error with_bundles(gen::Error error, Wanted& wanted) const;
    std::unique_ptr<Cache::Guard> lock(Wanted& wanted);
    void publish(Wanted& wanted, const Entry& entry);
    gen::Result<ImagePtr> produce(Wanted& wanted);
    gen::Result<Entry> compile(Wanted& wanted);
    void tell_late(const Wanted& wanted);
    // Lines of the log; nothing is put together that it doesn't take.
    void tell_known(const Wanted& wanted) const;
    void tell_taken(const Wanted& wanted, const Origin& origin, double seconds) const;
    void tell_compiled(Wanted& wanted, const CompileOutput& output, double seconds, bool late) const;
    void tell_refused(const Wanted& wanted, const gen::Error& error) const;
    /// Why no store has it, as clauses.
    std::string why_missing(Wanted& wanted) const;
    gen::Result<void> permit(const Wanted& wanted);
    gen::Result<ImagePtr> load(const Wanted& wanted, std::string_view object);
    gen::Result<std::string> identity_of(Wanted& wanted, const Origin* origin);
    gen::Result<std::string> source_of(Wanted& wanted, const Origin* origin);
    gen::Result<std::string> log_of(Wanted& wanted, const Origin* origin);

    ImagesOptions options_;
    std::mutex cells_mutex_;
    std::map<std::string, std::shared_ptr<Cell>, std::less<>> cells_;

    mutable std::mutex bundles_mutex_;
    std::vector<std::shared_ptr<Store>> bundles_;

    std::once_flag refusal_told_;
    std::atomic<bool> sealed_{false};
    std::atomic<std::int64_t> compiles_{0}, late_compiles_{0}, memory_hits_{0};
    std::atomic<double> compile_seconds_{0};
    Tally of_bundles_{KVJIT_ORIGIN_BUNDLE}, of_disk_{KVJIT_ORIGIN_DISK};
};

}  // namespace kvjit::rt
