// Where finished programs are kept: the disk cache behind what the engine asks of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

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

class Store {
public:
    virtual ~Store() = default;
    /// The entry for exactly this key, its digest verified; nothing if there is none or it is bad (a bad one is
    /// removed and logged). Never fails a call. Thread-safe.
    virtual std::optional<Entry> find(const EntryKey& key) = 0;
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
