#include "images/images.h"

#include <algorithm>
#include <chrono>

#include "digest.h"

namespace kvjit::rt {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// `what`: a clause about the program, whose name ends the sentence.
std::unexpected<gen::Error> not_compiled(kvjit_status status, const std::string& what, const Wanted& wanted) {
    const std::string of = wanted.spec() == nullptr ? "" : " of " + gen::print_spec(*wanted.spec());
    return gen::fail(status, "spec",
                     "compiling is off (KVJIT_JIT=off, or jit = 0) and " + what + " " +
                         std::string(wanted.program().info->label) + of + ", " + wanted.identity());
}

OriginPtr compiled_origin(const Entry& made) {
    StoredEntry stored{"", digest_of({made.object}), digest_hex(made.source)};
    return std::make_shared<Origin>(KVJIT_ORIGIN_COMPILED, nullptr, std::move(stored), made.object.size(), made.log);
}

}  // namespace

/// One identity. The mutex is held while its image is made: other requests wait for it.
struct Images::Cell {
    std::mutex making;
    std::weak_ptr<const Image> image;  // guarded by cells_mutex_, as is the next
    OriginPtr origin;                  // of the image
    std::atomic<std::uint64_t> failures{0};
    gen::Error last_failure;  // guarded by making
};

/// One search through memory and stores.
struct Images::Search {
    bool loads;                         // false: only searches, and counts nothing
    std::optional<gen::Error> failure;  // the first error that prevented a store from answering
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
    if (!options_.jit) return target;  // another machine's compiler may have compiled it for this target
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
    return cells_.emplace(identity, std::make_shared<Cell>()).first->second;  // both or neither: memory may run out
}

ImagePtr Images::in_memory(const std::string& identity) {
    const std::lock_guard lock(cells_mutex_);
    const auto it = cells_.find(identity);
    ImagePtr image = it != cells_.end() ? it->second->image.lock() : nullptr;
    if (image) ++memory_hits_;
    return image;
}

OriginPtr Images::origin(const std::string& identity) {
    const std::lock_guard lock(cells_mutex_);
    const auto it = cells_.find(identity);
    return it != cells_.end() && !it->second->image.expired() ? it->second->origin : nullptr;
}

std::optional<Images::Found> Images::in_memory(std::span<Wanted> wanted, std::size_t which, const Search& search) {
    const std::string& identity = wanted[which].identity();
    if (!search.loads) {
        OriginPtr origin = this->origin(identity);
        return origin ? std::optional(Found{which, nullptr, std::move(origin)}) : std::nullopt;
    }
    ImagePtr image = in_memory(identity);
    if (!image) return std::nullopt;
    tell_known(wanted[which]);
    return Found{which, std::move(image), origin(identity)};
}

ImagePtr Images::keep(const std::string& identity, ImagePtr image, OriginPtr origin) {
    const std::shared_ptr<Cell> cell = this->cell(identity);
    const std::lock_guard lock(cells_mutex_);
    if (ImagePtr first = cell->image.lock()) return first;
    cell->image = image;
    cell->origin = std::move(origin);
    return image;
}

void Images::sweep() {
    const std::lock_guard lock(cells_mutex_);
    // A cell with another owner is being made.
    std::erase_if(cells_,
                  [](const auto& entry) { return entry.second.use_count() == 1 && entry.second->image.expired(); });
}

void Images::add_bundle(std::shared_ptr<Store> bundle) {
    const std::lock_guard lock(bundles_mutex_);
    bundles_.push_back(std::move(bundle));
}

std::vector<std::shared_ptr<Store>> Images::bundles() const {
    const std::lock_guard lock(bundles_mutex_);
    return bundles_;
}

gen::Result<std::optional<Images::Found>> Images::find(std::span<const Candidate> candidates) {
    const gen::Target& best = *candidates.front().target;
    const gen::Result<Backend*> backend = this->backend(best);
    if (!backend) return std::unexpected(backend.error());
    if (auto runs = (*backend)->check_machine(best); !runs) return std::unexpected(runs.error());
    Search search{true, {}};
    return look(candidates, search);
}

gen::Result<std::optional<Images::Found>> Images::locate(std::span<const Candidate> candidates) {
    Search search{false, {}};
    return look(candidates, search);
}

gen::Result<std::optional<Images::Found>> Images::look(std::span<const Candidate> candidates, Search& search) {
    const gen::Result<Backend*> backend = this->backend(*candidates.front().target);
    if (!backend) return std::unexpected(backend.error());
    Compiler& compiler = (*backend)->compiler();
    std::vector<Wanted> all;
    all.emplace_back(candidates.front(), compiler, options_.templates);
    if (auto found = in_memory(all, 0, search)) return found;
    for (const Candidate& lesser : candidates.subspan(1)) all.emplace_back(lesser, compiler, options_.templates);
    gen::Result<std::optional<Found>> found = from_bundles(all, search);
    if (!found || *found) return found;
    if (compiles(compiler)) return what_was_made(all, search);
    found = from_disk(all, search);
    if (!found || *found) return found;
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (auto known = in_memory(all, i, search)) return known;
    }
    if (options_.jit || !search.failure) return std::nullopt;
    return std::unexpected(*search.failure);
}

gen::Result<std::optional<Images::Found>> Images::what_was_made(std::span<Wanted> wanted, Search& search) {
    const auto made = std::ranges::find(wanted, known_target(wanted.front().target()), &Wanted::target);
    const std::size_t which = made != wanted.end() ? static_cast<std::size_t>(made - wanted.begin()) : 0;
    if (which != 0) {
        if (auto known = in_memory(wanted, which, search)) return known;
    }
    gen::Result<std::optional<Found>> found = from_disk(wanted.subspan(which, 1), search);
    if (found && *found) (*found)->which = which;
    return found;
}

/// Without a disk cache there is no need to find out early whether there is a compiler.
bool Images::compiles(Compiler& compiler) const {
    return options_.jit && (!options_.disk || compiler.identity().has_value());
}

gen::Result<ImagePtr> Images::make(const Candidate& candidate) {
    gen::Result<Wanted> wanted = this->wanted(candidate);
    if (!wanted) return std::unexpected(wanted.error());
    if (auto permitted = permit(*wanted); !permitted) return std::unexpected(permitted.error());
    const std::shared_ptr<Cell> cell = this->cell(wanted->identity());
    const std::uint64_t failures_before = cell->failures;
    const std::lock_guard lock(cell->making);
    if (ImagePtr image = in_memory(wanted->identity())) {
        tell_known(*wanted);
        return image;
    }
    if (cell->failures != failures_before) return std::unexpected(cell->last_failure);
    gen::Result<ImagePtr> made = produce(*wanted);
    if (!made) {
        tell_refused(*wanted, made.error());
        cell->last_failure = made.error();
        ++cell->failures;
    }
    return made;
}

gen::Result<ImagePtr> Images::produce(Wanted& wanted) {
    if (!options_.jit) {
        const gen::Error error = not_compiled(KVJIT_NOT_FOUND, "no store holds the program", wanted).error();
        return std::unexpected(with_bundles(error, wanted));
    }
    // Another process may have published it since the last lookup.
    const std::unique_ptr<Cache::Guard> guard = lock(wanted);
    Search search{true, {}};
    const gen::Result<std::optional<Found>> hit = from_disk({&wanted, 1}, search);
    if (!hit) return std::unexpected(hit.error());
    if (*hit) return (*hit)->image;
    const gen::Result<Entry> made = compile(wanted);
    if (!made && made.error().status == KVJIT_COMPILER_MISSING) {
        return std::unexpected(with_bundles(made.error(), wanted));
    }
    if (!made) return std::unexpected(made.error());
    gen::Result<ImagePtr> image = load(wanted, made->object);
    if (!image) return image;
    ImagePtr kept = keep(wanted.identity(), *std::move(image), compiled_origin(*made));
    publish(wanted, *made);  // who finds the entry from now on finds the image in memory, too
    return kept;
}

gen::Result<MadeEntry> Images::entry(const Candidate& candidate) {
    gen::Result<Wanted> wanted = this->wanted(candidate);
    if (!wanted) return std::unexpected(wanted.error());
    gen::Result<EntryKey> key = wanted->key();
    if (!key) return std::unexpected(key.error());
    if (!key->maker) return std::unexpected(key->maker.error());
    const std::unique_ptr<Cache::Guard> guard = lock(*wanted);
    if (options_.disk) {
        Answer answer = options_.disk->find({&*wanted, 1});
        if (auto* held = std::get_if<Held>(&answer)) {
            ++of_disk_.hits;
            return MadeEntry{*std::move(key), std::move(held->entry)};
        }
    }
    gen::Result<Entry> made = compile(*wanted);
    if (!made) return std::unexpected(made.error());
    key = wanted->key();  // anew: the compiler that was opened may be another one than was found before
    if (!key) return std::unexpected(key.error());
    publish(*wanted, *made);
    return MadeEntry{*std::move(key), *std::move(made)};
}

std::unique_ptr<Cache::Guard> Images::lock(Wanted& wanted) {
    return options_.disk ? options_.disk->lock(wanted) : nullptr;
}

void Images::publish(Wanted& wanted, const Entry& entry) {
    if (options_.disk) options_.disk->publish(wanted, entry);
}

gen::Error Images::with_bundles(gen::Error error, Wanted& wanted) const {
    for (const std::shared_ptr<Store>& bundle : bundles()) {
        const Answer answer = bundle->may_hold(wanted) ? bundle->find({&wanted, 1}) : Answer(NotThere{});
        const auto* failed = std::get_if<Failed>(&answer);
        const std::string what = failed != nullptr ? failed->reason : bundle->near_miss(wanted);
        if (!what.empty()) error.message += "; " + what;
    }
    return error;
}

/// Tries each candidate in turn, so that the best one that any bundle has wins. Loaded images are not read again.
gen::Result<std::optional<Images::Found>> Images::from_bundles(std::span<Wanted> wanted, Search& search) {
    const std::vector<std::shared_ptr<Store>> bundles = this->bundles();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        for (const std::shared_ptr<Store>& bundle : bundles) {
            if (!bundle->may_hold(wanted[i])) continue;
            if (auto known = in_memory(wanted, i, search)) return known;
            gen::Result<std::optional<Found>> found = ask(*bundle, {&wanted[i], 1}, of_bundles_, search);
            if (!found) return found;
            if (*found) return Found{i, std::move((*found)->image), std::move((*found)->origin)};
        }
    }
    return std::nullopt;
}

gen::Result<std::optional<Images::Found>> Images::from_disk(std::span<Wanted> wanted, Search& search) {
    if (!options_.disk) return std::nullopt;
    return ask(*options_.disk, wanted, of_disk_, search);
}

gen::Result<std::optional<Images::Found>> Images::ask(Store& store, std::span<Wanted> wanted, Tally& tally,
                                                      Search& search) {
    const auto start = std::chrono::steady_clock::now();
    const auto note = [&](const gen::Error& error) {
        if (!search.failure) search.failure = error;
    };
    for (std::size_t next = 0; next < wanted.size();) {
        Answer answer = store.find(wanted.subspan(next));
        if (const auto* failed = std::get_if<Failed>(&answer)) {
            note(not_compiled(KVJIT_BAD_FILE, failed->reason + "; it may hold the program", wanted.front()).error());
        }
        auto* held = std::get_if<Held>(&answer);
        if (!held) break;
        const std::size_t which = next + held->which;
        const std::string& identity = wanted[which].identity();
        auto from =
            std::make_shared<const Origin>(tally.kind, &store, std::move(held->stored), held->entry.object.size(), "");
        if (!search.loads) return Found{which, nullptr, std::move(from)};
        // Another thread may have made the entry while the store was asked, and has then kept the image.
        if (auto known = in_memory(wanted, which, search)) return known;
        gen::Result<ImagePtr> image = load(wanted[which], held->entry.object);
        if (image) {
            const double seconds = seconds_since(start);
            ++tally.hits;
            tally.seconds += seconds;
            tell_taken(wanted[which], *from, seconds);
            ImagePtr kept = keep(identity, *std::move(image), std::move(from));
            return Found{which, std::move(kept), origin(identity)};
        }
        const std::string why = from->stored.place + ": " + image.error().message;
        options_.log(KVJIT_LOG_WARNING, "a stored object can't be loaded: " + why);
        // An object whose digest is right and that doesn't load is a defect, but a lesser candidate, another store or
        // the compiler may serve. Where memory or permission is lacking, it would be lacking for those, too.
        if (image.error().status != KVJIT_BAD_FILE) return std::unexpected(image.error());
        image.error().message = why;
        note(image.error());
        next = which + 1;
    }
    return std::nullopt;
}

gen::Result<Entry> Images::compile(Wanted& wanted) {
    const gen::Result<Backend*> backend = this->backend(wanted.target());
    if (!backend) return std::unexpected(backend.error());
    const gen::Result<std::string>& source = wanted.source();
    if (!source) return std::unexpected(source.error());
    Compiler& compiler = (*backend)->compiler();
    const bool late = sealed_;
    const double load_before = compiler.load_seconds();
    const auto start = std::chrono::steady_clock::now();
    gen::Result<CompileOutput> output = wanted.compile(*source, CompileStage::kObject);
    if (!output) return std::unexpected(output.error());
    ++compiles_;
    const double seconds = seconds_since(start) - (compiler.load_seconds() - load_before);
    compile_seconds_ += seconds;
    tell_compiled(wanted, *output, seconds, late);
    if (late) tell_late(wanted);
    return Entry{std::move(output->object), *source, std::move(output->log)};
}

void Images::tell_late(const Wanted& wanted) {
    ++late_compiles_;
    if (!options_.on_late_compile) return;
    const std::string spec = wanted.spec() != nullptr ? gen::print_spec(*wanted.spec()) : "";
    options_.on_late_compile(spec, std::string(wanted.program().info->label));
}

gen::Result<ImagePtr> Images::load(const Wanted& wanted, std::string_view object) {
    const gen::Result<Backend*> backend = this->backend(wanted.target());
    if (!backend) return std::unexpected(backend.error());
    if (auto permitted = permit(wanted); !permitted) return std::unexpected(permitted.error());
    return (*backend)->load(object, wanted.program(), wanted.name());
}

kvjit_engine_stats Images::stats() const {
    kvjit_engine_stats stats{};
    stats.struct_size = sizeof stats;
    stats.compiles = compiles_;
    stats.disk_hits = of_disk_.hits;
    stats.memory_hits = memory_hits_;
    stats.compile_seconds = compile_seconds_;
    for (const std::unique_ptr<Backend>& backend : options_.backends) {
        if (backend) stats.compiler_load_seconds += backend->compiler().load_seconds();
    }
    stats.disk_seconds = of_disk_.seconds;
    stats.bundle_hits = of_bundles_.hits;
    stats.bundle_seconds = of_bundles_.seconds;
    stats.late_compiles = late_compiles_;
    return stats;
}

}  // namespace kvjit::rt
