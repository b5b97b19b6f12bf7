// From a program to a loaded image: memory, the stores in their order, the compiler.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "backend.h"
#include "images/image.h"
#include "images/store.h"
#include "images/wanted.h"
#include "log.h"

namespace kvjit::rt {

struct ImagesOptions {
    bool jit = true;
    Backends backends;
    std::unique_ptr<Cache> disk;  // null: none
    gen::TemplateReader templates;
    Log log;
};

/// Thread-safe. Holds images weakly: those that neither a kernel nor a plan holds are gone.
class Images {
public:
    explicit Images(ImagesOptions options);
    ~Images();

    struct Found {
        std::size_t which;  // of the candidates
        ImagePtr image;
    };
    /// The image of the best candidate that memory or a store has; nothing if none has any. Candidates stand best first
    /// and are of one backend. Where there is a compiler, it serves the first one, and nothing is asked for the others.
    /// Errors: what the machine can't run; without compiling, what keeps a store from answering.
    gen::Result<std::optional<Found>> find(std::span<const Candidate> candidates);

    /// The image of one candidate: as find, else from the compiler. One compile an identity, however many threads and
    /// processes ask; those who waited for a failing one get its error. Errors: KVJIT_NOT_FOUND without compiling.
    gen::Result<ImagePtr> make(const Candidate& candidate);

    /// Text of a stage, made anew (KVJIT_STAGE_*).
    gen::Result<std::string> emit(const Candidate& candidate, kvjit_stage stage);

    /// See Compiler::known_target.
    gen::Target known_target(const gen::Target& target) const;
    /// Errors: KVJIT_BAD_TARGET where this build has none for it.
    gen::Result<Backend*> backend(const gen::Target& target) const;
    const Log& log() const { return options_.log; }
    /// Forgets the names of images that are gone.
    void sweep();
    kvjit_engine_stats stats() const;

private:
    struct Cell;

    gen::Result<Wanted> wanted(const Candidate& candidate) const;
    bool compiles(Compiler& compiler) const;
    std::shared_ptr<Cell> cell(const std::string& identity);
    ImagePtr in_memory(const std::string& identity);
    /// Another thread's image, if it was first.
    ImagePtr keep(const std::string& identity, ImagePtr image);
    gen::Result<std::optional<Found>> from_disk(std::span<Wanted> wanted);
    gen::Result<ImagePtr> load_held(const Wanted& wanted, const Entry& entry);
    gen::Result<ImagePtr> produce(Wanted& wanted);
    gen::Result<ImagePtr> compile(Wanted& wanted);
    gen::Result<ImagePtr> load(const Wanted& wanted, std::string_view object);

    ImagesOptions options_;
    std::mutex cells_mutex_;
    std::map<std::string, std::shared_ptr<Cell>, std::less<>> cells_;

    std::atomic<std::int64_t> compiles_{0}, disk_hits_{0}, memory_hits_{0};
    std::atomic<double> compile_seconds_{0}, disk_seconds_{0};
};

}  // namespace kvjit::rt
