#include "fakes.h"

#include <algorithm>

#include "digest.h"
#include "generator/identity.h"

namespace kvjit::rt::test {
namespace {

class CountedImage final : public Image {
public:
    CountedImage(World& world, const LaunchShape& launch) : Image(launch), world_(world) { ++world_.images; }
    ~CountedImage() override { --world_.images; }
    void* entry() const override { return const_cast<CountedImage*>(this); }

private:
    World& world_;
};

class FakeCompiler final : public Compiler {
public:
    explicit FakeCompiler(World& world) : world_(world) {}

    gen::Result<std::string> identity() override {
        ++world_.identities;
        if (world_.compiler_is_missing) return gen::fail(KVJIT_COMPILER_MISSING, "compiler", "there is none");
        return "fake compiler";
    }

    gen::Result<CompileOutput> compile(std::string_view source, std::string_view name, const gen::Target& target,
                                       CompileStage) override {
        ++world_.compiles;
        {
            const std::lock_guard lock(mutex_);
            world_.sources.emplace_back(source);
        }
        if (world_.while_compiling) world_.while_compiling();
        if (world_.source_is_bad) return gen::fail(KVJIT_COMPILE_FAILED, "source", "it is bad");
        return CompileOutput{std::string(name) + " for " + target.text() + world_.object_end, world_.log};
    }

    gen::Target known_target(const gen::Target& target) override { return world_.known_target.value_or(target); }

    double load_seconds() const override { return 0; }

private:
    World& world_;
    std::mutex mutex_;
};

class FakeBackend final : public Backend {
public:
    explicit FakeBackend(World& world) : world_(world), compiler_(world) {}

    Compiler& compiler() override { return compiler_; }
    gen::Result<void> check_machine(const gen::Target&) override { return {}; }
    gen::Result<ImagePtr> load(std::string_view object, const gen::Program& program, const std::string&) override {
        ++world_.loads;
        if (const auto it = world_.refused_objects.find(object); it != world_.refused_objects.end()) {
            return gen::fail(it->second, "object", std::string(object) + " doesn't load");
        }
        return std::make_shared<CountedImage>(world_, program.launch);
    }
    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr, const kvjit_batch&, const kvjit_plan_options&) override {
        return gen::fail(KVJIT_INTERNAL, "plan", "none is asked for here");
    }
    gen::Result<std::unique_ptr<Plan>> plan(KernelPtr, const RelayoutRequest&, const kvjit_plan_options&) override {
        return gen::fail(KVJIT_INTERNAL, "plan", "none is asked for here");
    }

private:
    World& world_;
    FakeCompiler compiler_;
};

/// Places are identities.
Held held(std::size_t which, const std::string& identity, const Entry& entry) {
    return {which, entry, {"at " + identity, digest_of({entry.object}), digest_hex(entry.source)}};
}

gen::Result<std::string> part_of(const std::map<std::string, Entry>& entries, const std::string& identity,
                                 const StoredEntry& stored, EntryPart part) {
    const auto it = entries.find(identity);
    if (it == entries.end()) return gen::fail(KVJIT_NOT_FOUND, "store", stored.place + " is gone");
    const Entry& entry = it->second;
    if (digest_of({entry.object}) != stored.digest)
        return gen::fail(KVJIT_BAD_FILE, "store", stored.place + " changed");
    switch (part) {
        case EntryPart::kProvenance:
            return gen::print_provenance(digest_hex(entry.source), "the store's maker");
        case EntryPart::kObject:
            return entry.object;
        case EntryPart::kSource:
            return entry.source;
        case EntryPart::kLog:
            break;
    }
    return entry.log;
}

class FakeCache final : public Cache {
public:
    explicit FakeCache(World& world) : world_(world) {}

    Answer find(std::span<Wanted> candidates) override {
        const std::lock_guard lock(mutex_);
        std::vector<std::string>& row = world_.asked.emplace_back();
        for (const Wanted& wanted : candidates) row.push_back(wanted.identity());
        if (!world_.failure.empty()) return Failed{world_.failure};
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (const auto it = world_.entries.find(row[i]); it != world_.entries.end())
                return held(i, row[i], it->second);
        }
        return NotThere{};
    }

    gen::Result<std::string> read(const std::string& identity, const StoredEntry& stored,
                                  EntryPart part) const override {
        return part_of(world_.entries, identity, stored, part);
    }

    void publish(Wanted& wanted, const Entry& entry) override {
        const std::lock_guard lock(mutex_);
        ++world_.published;
        world_.entries[wanted.identity()] = entry;
    }

    std::unique_ptr<Guard> lock(Wanted&) override { return std::make_unique<Guard>(); }

private:
    World& world_;
    std::mutex mutex_;
};

}  // namespace

ImagesOptions options_over(World& world, bool jit) {
    ImagesOptions options;
    options.jit = jit;
    for (auto& backend : options.backends) backend = std::make_unique<FakeBackend>(world);
    options.disk = std::make_unique<FakeCache>(world);
    options.tiles = &world.tiles;
    options.templates.read = [](std::string_view path) {
        return gen::Result<std::string>("// " + std::string(path) + "\n");
    };
    options.log = [&world](kvjit_log_level level, const std::string& message) {
        if (level == KVJIT_LOG_WARNING) world.warnings.push_back(message);
    };
    return options;
}

const gen::TargetList& two_levels() {
    static const gen::TargetList targets = {*gen::named_target("x86-64-v3"), *gen::named_target("x86-64-v2")};
    return targets;
}

gen::KernelSpec spec_of(const std::string& text) {
    const gen::Result<gen::KernelSpec> spec = gen::parse_spec(text);
    REQUIRE_MESSAGE(spec.has_value(), spec.error().message);
    return *spec;
}

Answer FakeBundle::find(std::span<Wanted> candidates) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        asked.push_back(candidates[i].identity());
        if (!failure.empty()) return Failed{failure};
        if (const auto it = entries.find(asked.back()); it != entries.end()) return held(i, asked.back(), it->second);
    }
    return NotThere{};
}

gen::Result<std::string> FakeBundle::read(const std::string& identity, const StoredEntry& stored,
                                          EntryPart part) const {
    return part_of(entries, identity, stored, part);
}

kvjit_programs bit_of(const gen::Program& program) {
    return program.info->bit;
}

std::string identity_of(const std::string& spec, kvjit_programs program, const gen::Target& target) {
    const auto programs = gen::lower(spec_of(spec), target);
    REQUIRE(programs.has_value());
    const auto it = std::ranges::find(*programs, program, bit_of);
    REQUIRE(it != programs->end());
    return gen::identity_text(*it, target);
}

void put(World& world, const std::string& spec, kvjit_programs program, const gen::Target& target) {
    world.entries[identity_of(spec, program, target)] = {"object", "source", "log"};
}

void put(FakeBundle& bundle, const std::string& spec, kvjit_programs program, const gen::Target& target) {
    bundle.entries[identity_of(spec, program, target)] = {"bundled object", "", ""};
}

bool is_for(const std::string& identity, const gen::Target& target) {
    return identity.ends_with(";" + target.text());
}

}  // namespace kvjit::rt::test
