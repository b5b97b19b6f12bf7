// The interface of stores of compiled programs, as Images uses it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>

#include "digest.h"
#include "images/wanted.h"

namespace kvjit::rt {

/// An entry's contents.
struct Entry {
    std::string object;
    std::string source;
    std::string log;
};

/// Identifies one entry that a store has returned.
struct StoredEntry {
    std::string place;   // for people: a file's name, or a description
    Digest digest{};     // the store's own, which identifies the entry later
    std::string source;  // the source's digest; "": not known
};

/// The best candidate's entry in a store.
struct Held {
    std::size_t which;  // index of the candidate
    Entry entry;        // source and log only if reading them costs nothing
    StoredEntry stored;
};

enum class EntryPart { kProvenance, kObject, kSource, kLog };

/// The store has no such entry, or had a bad one that it has removed.
struct NotThere {};

/// The store can't tell whether it has the entry, and may find it later; or it has a bad one that it can't remove.
struct Failed {
    std::string reason;  // a clause: "/cache/4f can't be opened: Too many open files"
};

using Answer = std::variant<Held, NotThere, Failed>;

class Store {
public:
    virtual ~Store() = default;
    /// Looks for the candidates, best first, at least one; each entry's digest is verified. A bad entry is logged, and
    /// removed if possible; failures are logged, too, since a caller that can do without the store may ignore them.
    /// Thread-safe.
    virtual Answer find(std::span<Wanted> candidates) = 0;
    /// False if it is known without reading that the entry is missing. Thread-safe.
    virtual bool may_hold(const Wanted&) const { return true; }
    /// An entry of the same program that doesn't serve, as a clause: "bundle a.kvjb has it for sm_90a"; or "".
    /// Thread-safe.
    virtual std::string near_miss(Wanted&) const { return ""; }
    /// A part of the very entry that this store's `find` has returned for the identity. Removes and logs nothing.
    /// Errors: KVJIT_NOT_FOUND if the entry is gone, or was made without the part; KVJIT_BAD_FILE if it can't be read,
    /// or another one is in its place. Thread-safe.
    virtual gen::Result<std::string> read(const std::string& identity, const StoredEntry& stored,
                                          EntryPart part) const = 0;
};

/// A store for the compiler's entries.
class Cache : public Store {
public:
    /// Stores an entry; best effort. Thread-safe.
    virtual void publish(Wanted& wanted, const Entry& entry) = 0;
    /// Keeps other processes from compiling the same entry while the returned guard lives. Waits for a limited time:
    /// after that call find again, then compile. Never blocks for ever, never fails.
    class Guard {
    public:
        virtual ~Guard() = default;
        /// False if the wait was too short or nothing can be locked: others may be compiling the same entry.
        virtual bool held() const { return false; }
    };
    virtual std::unique_ptr<Guard> lock(Wanted& wanted) = 0;
};

}  // namespace kvjit::rt
