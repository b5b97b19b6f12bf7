#include "images/images.h"

#include <chrono>
#include <vector>

#include "generator/identity.h"

namespace kvjit::rt {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// `what`: a clause about the program, whose name ends the sentence.
std::unexpected<gen::Error> not_compiled(kvjit_status status, const std::string& what, const Wanted& wanted) {
    return gen::fail(status, "spec",
                     "compiling is off (KVJIT_JIT=off, or jit = 0) and " + what + " " + wanted.identity());
}

CompileStage compile_stage(kvjit_stage stage) {
    if (stage == KVJIT_STAGE_LOG) return CompileStage::kObject;
    return stage == KVJIT_STAGE_IR ? CompileStage::kIr : CompileStage::kAsm;
}

}  // namespace

/// One identity. The mutex is held while its image is made: whoever asks meanwhile waits for it.
struct Images::Cell {
    std::mutex making;
    std::weak_ptr<const Image> image;  // guarded by cells_mutex_
    std::atomic<std::uint64_t> failures{0};
    gen::Error last_failure;  // guarded by making
};

Images::Images(ImagesOptions options) : options_(std::move(options)) {}
Images::~Images() = default;

gen::Result<Backend*> Images::backend(const gen::Target& target) const {
    const auto& found = options_.backends[static_cast<std::size_t>(target.backend)];
    if (found) return found.get();
    return gen::fail(KVJIT_BAD_TARGET, "target",
                     "target is " + target.name() + "; this build of kvjit has no such targets (KVJIT_CPU_JIT=OFF)");
}

gen::Target Images::known_target(const gen::Target& target) const {
    const gen::Result<Backend*> backend = this->backend(target);
    return backend ? (*backend)->compiler().known_target(target) : target;  // kernels of no backend can still be shown
}

gen::Result<Wanted> Images::wanted(const Candidate& candidate) const {
    const gen::Result<Backend*> backend = this->backend(*candidate.target);
    if (!backend) return std::unexpected(backend.error());
    return Wanted(candidate, (*backend)->compiler(), options_.templates);
}

std::shared_ptr<Images::Cell> Images::cell(const std::string& identity) {
    const std::lock_guard lock(cells_mutex_);
    if (const auto it = cells_.find(identity); it != cells_.end()) return it->second;
    return cells_.emplace(identity, std::make_shared<Cell>()).first->second;  // no name without a cell: memory may end
}

ImagePtr Images::in_memory(const std::string& identity) {
    const std::lock_guard lock(cells_mutex_);
    const auto it = cells_.find(identity);
    ImagePtr image = it != cells_.end() ? it->second->image.lock() : nullptr;
    if (image) ++memory_hits_;
    return image;
}

ImagePtr Images::keep(const std::string& identity, ImagePtr image) {
    const std::shared_ptr<Cell> cell = this->cell(identity);
    const std::lock_guard lock(cells_mutex_);
    if (ImagePtr first = cell->image.lock()) return first;
    cell->image = image;
    return image;
}

void Images::sweep() {
    const std::lock_guard lock(cells_mutex_);
    // A cell that somebody else holds is being made.
    std::erase_if(cells_,
                  [](const auto& entry) { return entry.second.use_count() == 1 && entry.second->image.expired(); });
}

gen::Result<std::optional<Images::Found>> Images::find(std::span<const Candidate> candidates) {
    const gen::Target& best = *candidates.front().target;
    const gen::Result<Backend*> backend = this->backend(best);
    if (!backend) return std::unexpected(backend.error());
    if (auto runs = (*backend)->check_machine(best); !runs) return std::unexpected(runs.error());
    gen::Result<Wanted> first = this->wanted(candidates.front());
    if (!first) return std::unexpected(first.error());
    if (ImagePtr image = in_memory(first->identity())) return Found{0, std::move(image)};
    if (compiles((*backend)->compiler())) return from_disk({&*first, 1});
    std::vector<Wanted> all;
    for (const Candidate& candidate : candidates) {
        all.emplace_back(candidate, (*backend)->compiler(), options_.templates);
    }
    gen::Result<std::optional<Found>> found = from_disk(all);
    for (std::size_t i = 1; i < all.size() && (!found || !*found); ++i) {
        if (ImagePtr image = in_memory(all[i].identity())) return Found{i, std::move(image)};
    }
    return found;
}

/// Without a disk cache nobody needs to know whether there is a compiler before it is needed.
bool Images::compiles(Compiler& compiler) const {
    return options_.jit && (!options_.disk || compiler.identity().has_value());
}

gen::Result<ImagePtr> Images::make(const Candidate& candidate) {
    gen::Result<Wanted> wanted = this->wanted(candidate);
    if (!wanted) return std::unexpected(wanted.error());
    const std::shared_ptr<Cell> cell = this->cell(wanted->identity());
    const std::uint64_t failures_before = cell->failures;
    const std::lock_guard lock(cell->making);
    if (ImagePtr image = in_memory(wanted->identity())) return image;
    if (cell->failures != failures_before) return std::unexpected(cell->last_failure);
    gen::Result<ImagePtr> made = produce(*wanted);
    if (!made) {
        cell->last_failure = made.error();
        ++cell->failures;
    }
    return made;
}

gen::Result<ImagePtr> Images::produce(Wanted& wanted) {
    if (!options_.jit) return not_compiled(KVJIT_NOT_FOUND, "no store holds the program", wanted);
    // Another process may have published it since this one looked.
    const std::unique_ptr<Cache::Guard> guard = options_.disk ? options_.disk->lock(wanted) : nullptr;
    const gen::Result<std::optional<Found>> hit = from_disk({&wanted, 1});
    if (!hit) return std::unexpected(hit.error());
    return *hit ? (*hit)->image : compile(wanted);
}

/// Nothing, not an error, where the disk cache can't say or holds a bad object, and compiling serves as well.
gen::Result<std::optional<Images::Found>> Images::from_disk(std::span<Wanted> wanted) {
    if (!options_.disk) return std::nullopt;
    const auto start = std::chrono::steady_clock::now();
    std::optional<gen::Error> unloadable;  // the best one's
    for (std::size_t next = 0; next < wanted.size();) {
        const Answer answer = options_.disk->find(wanted.subspan(next));
        if (const auto* failed = std::get_if<Failed>(&answer); failed && !options_.jit) {
            return not_compiled(KVJIT_BAD_FILE, failed->reason + "; it may hold the program", wanted.front());
        }
        const auto* held = std::get_if<Held>(&answer);
        if (!held) break;
        const std::size_t which = next + held->which;
        gen::Result<ImagePtr> image = load_held(wanted[which], held->entry);
        if (image) {
            disk_seconds_ += seconds_since(start);
            return Found{which, *std::move(image)};
        }
        // A digest that holds over an object that doesn't load is a defect, but a lesser candidate may serve, or the
        // compiler. Memory or permission that is missing here would be missing for what they give, too.
        if (image.error().status != KVJIT_BAD_FILE) return std::unexpected(image.error());
        if (!unloadable) unloadable = image.error();
        next = which + 1;
    }
    if (unloadable && !options_.jit) return std::unexpected(*unloadable);
    return std::nullopt;
}

gen::Result<ImagePtr> Images::load_held(const Wanted& wanted, const Entry& entry) {
    gen::Result<ImagePtr> image = load(wanted, entry.object);
    if (!image) {
        options_.log(KVJIT_LOG_WARNING, "a cached object can't be loaded: " + image.error().message);
        return image;
    }
    ++disk_hits_;
    return keep(wanted.identity(), *std::move(image));
}

gen::Result<ImagePtr> Images::compile(Wanted& wanted) {
    const gen::Result<Backend*> backend = this->backend(wanted.target());
    if (!backend) return std::unexpected(backend.error());
    const gen::Result<std::string>& source = wanted.source();
    if (!source) return std::unexpected(source.error());
    Compiler& compiler = (*backend)->compiler();
    const double load_before = compiler.load_seconds();
    const auto start = std::chrono::steady_clock::now();
    gen::Result<CompileOutput> output = compiler.compile(*source, gen::program_info(wanted.program().kind).name,
                                                         wanted.target(), CompileStage::kObject);
    if (!output) return std::unexpected(output.error());
    ++compiles_;
    compile_seconds_ += seconds_since(start) - (compiler.load_seconds() - load_before);
    options_.log(KVJIT_LOG_INFO, "compiled " + wanted.name());
    gen::Result<ImagePtr> image = load(wanted, output->object);
    if (!image) return image;
    if (options_.disk) options_.disk->publish(wanted, {output->object, *source, output->log});
    return keep(wanted.identity(), *std::move(image));
}

gen::Result<ImagePtr> Images::load(const Wanted& wanted, std::string_view object) {
    const gen::Result<Backend*> backend = this->backend(wanted.target());
    if (!backend) return std::unexpected(backend.error());
    return (*backend)->load(object, wanted.program(), wanted.name());
}

gen::Result<std::string> Images::emit(const Candidate& candidate, kvjit_stage stage) {
    gen::Result<Wanted> wanted = this->wanted(candidate);
    if (!wanted) return std::unexpected(wanted.error());
    const gen::Result<std::string>& source = wanted->source();
    if (stage == KVJIT_STAGE_SOURCE || !source) return source;
    if (stage == KVJIT_STAGE_IDENTITY) {
        const gen::Result<EntryKey> key = wanted->key();
        if (!key) return std::unexpected(key.error());
        if (!key->maker) return std::unexpected(key->maker.error());
        return gen::print_stage(key->identity, key->source, *key->maker);
    }
    const gen::Result<Backend*> backend = this->backend(wanted->target());
    if (!backend) return std::unexpected(backend.error());
    gen::Result<CompileOutput> output = (*backend)->compiler().compile(
        *source, gen::program_info(wanted->program().kind).name, wanted->target(), compile_stage(stage));
    if (!output) return std::unexpected(output.error());
    return std::move(stage == KVJIT_STAGE_LOG ? output->log : output->object);
}

kvjit_engine_stats Images::stats() const {
    kvjit_engine_stats stats{};
    stats.struct_size = sizeof stats;
    stats.compiles = compiles_;
    stats.disk_hits = disk_hits_;
    stats.memory_hits = memory_hits_;
    stats.compile_seconds = compile_seconds_;
    for (const std::unique_ptr<Backend>& backend : options_.backends) {
        if (backend) stats.compiler_load_seconds += backend->compiler().load_seconds();
    }
    stats.disk_seconds = disk_seconds_;
    return stats;
}

}  // namespace kvjit::rt
