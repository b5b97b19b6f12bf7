// A backend whose compiler and loader only count, and a cache in memory: what decides where an image comes from.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine.h"

namespace kvjit::rt::test {

/// What the fakes saw and what they are to do. Outlives the engine.
struct World {
    // Compiler
    std::atomic<int> compiles{0}, identities{0};
    std::function<void()> while_compiling;
    std::optional<gen::Target> known_target;  // that it compiles for; nothing: for any
    bool compiler_is_missing = false;
    bool source_is_bad = false;
    std::string log, object_end;       // what it says, and puts behind each object
    std::vector<std::string> sources;  // that it was given
    // Loader
    std::atomic<int> loads{0}, images{0};                              // that were asked for, that are alive
    std::map<std::string, kvjit_status, std::less<>> refused_objects;  // and why they don't load
    // Cache
    std::map<std::string, Entry> entries;         // by identity
    std::vector<std::vector<std::string>> asked;  // identities, a row for each find
    std::string failure;                          // "": it answers
    int published = 0;
    // AMX
    int amx_error = 0;  // the system's answer
    std::atomic<int> amx_requests{0};
    TilePermission tiles{[this] { return ++amx_requests, amx_error; }};
    // Log
    std::vector<std::string> warnings;
};

/// A store that was shipped: what it holds, and what it was asked for.
class FakeBundle final : public Store {
public:
    Answer find(std::span<Wanted> candidates) override;
    bool may_hold(const Wanted& wanted) const override { return entries.contains(wanted.identity()); }
    std::string near_miss(Wanted&) const override { return near; }
    gen::Result<std::string> read(const std::string& identity, const StoredEntry& stored,
                                  EntryPart part) const override;

    std::map<std::string, Entry> entries;  // by identity
    std::vector<std::string> asked;        // identities
    std::string failure, near;
};

/// Images over the fakes.
ImagesOptions options_over(World& world, bool jit = true);

/// "x86-64-v3", "x86-64-v2": targets that run on any machine here, best first.
const gen::TargetList& two_levels();
inline const gen::Target& best() {
    return two_levels()[0];
}
inline const gen::Target& second() {
    return two_levels()[1];
}

gen::KernelSpec spec_of(const std::string& text);
kvjit_programs bit_of(const gen::Program& program);
/// Of the spec's program on the target.
std::string identity_of(const std::string& spec, kvjit_programs program, const gen::Target& target);
/// What the cache holds for the spec's program on the target.
void put(World& world, const std::string& spec, kvjit_programs program, const gen::Target& target);
void put(FakeBundle& bundle, const std::string& spec, kvjit_programs program, const gen::Target& target);
/// The target's text in an identity.
bool is_for(const std::string& identity, const gen::Target& target);

/// A program on both levels, best first.
struct BothLevels {
    explicit BothLevels(const std::string& spec = "op=Merge") {
        for (const gen::Target& target : two_levels()) programs.push_back(gen::lower(spec_of(spec), target)->front());
        for (std::size_t i = 0; i < 2; ++i) candidates.push_back({&two_levels()[i], &programs[i]});
    }
    std::vector<gen::Program> programs;
    std::vector<Candidate> candidates;
};

}  // namespace kvjit::rt::test
