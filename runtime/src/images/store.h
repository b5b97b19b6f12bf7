// Where finished programs are kept, behind what Images asks of it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>

#include "digest.h"
#include "images/wanted.h"

namespace kvjit::rt {

/// What an entry holds.
struct Entry {
    std::string object;
    std::string source;
    std::string log;
};

/// Names an entry that a store has handed out, and no other one.
struct StoredEntry {
    std::string place;   // for people: a file's name, or what stands for it
    Digest digest{};     // the store's own, by which it knows the entry again
    std::string source;  // the source's digest; "": not known
};

/// The entry of the best candidate that the store has.
struct Held {
    std::size_t which;  // of the candidates
    Entry entry;        // source and log only where reading them costs nothing
    StoredEntry stored;
};

enum class EntryPart { kProvenance, kObject, kSource, kLog };

/// The store holds no such entry, or held a bad one that is gone now.
struct NotThere {};

/// The store can't say whether it holds the entry, which it may find when asked later; or holds a bad one for good.
struct Failed {
    std::string reason;  // a clause: "/cache/4f can't be opened: Too many open files"
};

using Answer = std::variant<Held, NotThere, Failed>;

class Store {
public:
    virtual ~Store() = default;
    /// Looks for the candidates, best first, at least one; each entry's digest is verified. A bad one is logged, and
    /// removed where that can be; so is logged what failed, since a caller that can do without the store need not care.
    /// Thread-safe.
    virtual Answer find(std::span<Wanted> candidates) = 0;
    /// False where it is known without reading that the entry isn't there. Thread-safe.
    virtual bool may_hold(const Wanted&) const { return true; }
    /// What it has of the same program that doesn't serve, as a clause: "bundle a.kvjb has it for sm_90a"; or "".
    /// Thread-safe.
    virtual std::string near_miss(const Wanted&) const { return ""; }
    /// A part of an entry that `find` of this store has handed out for the identity, and of no other one. Removes and
    /// logs nothing. Errors: KVJIT_NOT_FOUND where the entry is gone, or was made without the part; KVJIT_BAD_FILE
    /// where it can't be read, or another one is in its place. Thread-safe.
    virtual gen::Result<std::string> read(const std::string& identity, const StoredEntry& stored,
                                          EntryPart part) const = 0;
};

/// A store that keeps what the compiler made.
class Cache : public Store {
public:
    /// Keeps an entry; best effort. Thread-safe.
    virtual void publish(Wanted& wanted, const Entry& entry) = 0;
    /// Holds other processes back from compiling the same entry while the returned guard lives, for a bounded wait:
    /// afterwards find again, then compile. Never blocks for ever, never fails.
    class Guard {
    public:
        virtual ~Guard() = default;
        /// False if the wait was not enough or nothing can be locked: others may be compiling the same entry.
        virtual bool held() const { return false; }
    };
    virtual std::unique_ptr<Guard> lock(Wanted& wanted) = 0;
};

}  // namespace kvjit::rt
