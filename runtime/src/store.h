// Where finished programs are kept: the disk cache behind what the engine asks of it.
#pragma once

#include <memory>
#include <string>
#include <variant>

namespace kvjit::rt {

/// What names an entry. Both texts are compared whole, never by digest alone.
struct EntryKey {
    std::string identity;    // lowered program + kernel ABI + target
    std::string provenance;  // rendered source's digest + flags + compiler
};

/// What an entry holds.
struct Entry {
    std::string object;
    std::string source;
    std::string log;
};

/// The store holds no such entry, or held a bad one.
struct NotThere {};

/// The store can't say whether it holds the entry: asked later, it may find it.
struct Failed {
    std::string reason;  // a clause: "/cache/4f can't be opened: Too many open files"
};

/// What a store says to a key.
using Answer = std::variant<Entry, NotThere, Failed>;

class Store {
public:
    virtual ~Store() = default;
    /// The entry for exactly this key, its digest verified. A bad one is removed and logged; so is logged what failed,
    /// since a caller that can do without the store need not care. Thread-safe.
    virtual Answer find(const EntryKey& key) = 0;
    /// Keeps an entry; best effort. Thread-safe.
    virtual void publish(const EntryKey& key, const Entry& entry) = 0;
    /// Holds other processes back from compiling the same key while the returned guard lives, for a bounded wait:
    /// afterwards find again, then compile. Never blocks for ever, never fails.
    class Guard {
    public:
        virtual ~Guard() = default;
        /// False if the wait was not enough or nothing can be locked: others may be compiling the same key.
        virtual bool held() const { return false; }
    };
    virtual std::unique_ptr<Guard> lock(const EntryKey& key) = 0;
};

}  // namespace kvjit::rt
