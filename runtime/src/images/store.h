// Where finished programs are kept, behind what Images asks of it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>

#include "images/wanted.h"

namespace kvjit::rt {

/// What an entry holds.
struct Entry {
    std::string object;
    std::string source;
    std::string log;
};

/// The entry of the best candidate that the store has.
struct Held {
    std::size_t which;  // of the candidates
    Entry entry;
};

/// The store holds no such entry, or held a bad one.
struct NotThere {};

/// The store can't say whether it holds the entry: asked later, it may find it.
struct Failed {
    std::string reason;  // a clause: "/cache/4f can't be opened: Too many open files"
};

using Answer = std::variant<Held, NotThere, Failed>;

class Store {
public:
    virtual ~Store() = default;
    /// Looks for the candidates, best first, at least one; each entry's digest is verified. A bad one is removed and
    /// logged; so is logged what failed, since a caller that can do without the store need not care. Thread-safe.
    virtual Answer find(std::span<Wanted> candidates) = 0;
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
