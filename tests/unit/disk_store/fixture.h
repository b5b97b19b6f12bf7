// What the disk cache's tests share: options, a log that remembers, entries, child processes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "disk_cache/disk_store.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace kvjit::rt::test {

using kvjit::test::read_file;

using kvjit::test::files_in;
using kvjit::test::TemporaryFolder;

/// The real calls, but for fsync: it takes most of the time, and only a power cut could tell.
struct UnsyncedCalls : FileCalls {
    int sync(int) override { return 0; }
};

/// Options for `folder`, without fsync, that keep each message in `messages`.
DiskStoreOptions options_for(const std::string& folder, std::vector<std::string>* messages = nullptr);

EntryKey key_of(int number);
/// The same, of another maker, or of whichever.
EntryKey made_by(EntryKey key, const std::string& maker);
EntryKey made_by_anyone(EntryKey key);
/// Every number's is another one; the object holds bytes of every value.
Entry entry_of(int number, std::size_t object_bytes = 300);
bool equal(const DiskStore::Lookup& found, const Entry& entry);
bool is_there(const DiskStore::Lookup& answer);
bool is_not_there(const DiskStore::Lookup& answer);
/// Why the store could not look; "" where it could.
std::string failure(const DiskStore::Lookup& answer);

/// Where a store of `folder` keeps the entry or the lock of a key.
std::string entry_path(const std::string& folder, const EntryKey& key);
std::string lock_path(const std::string& folder, const EntryKey& key);
/// The path of the folder's only entry.
std::string only_entry(const std::string& folder);
void write_file(const std::string& path, const std::string& bytes);
mode_t mode_of(const std::string& path);
/// Takes the owner's right to write away from a folder and all folders in it.
void make_unwritable(const std::string& folder);

/// A process forked from this one that runs `body` and ends. Its threads are those of `body`.
class Child {
public:
    explicit Child(std::function<std::string()> body);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    pid_t id() const { return id_; }
    void kill();
    /// Waits for its end: what `body` returned, or how it died instead, "killed by signal 9".
    std::string wait();

private:
    pid_t id_;
    int pipe_;
};

std::string in_child(std::function<std::string()> body);
/// In a child that has no privileges: as nobody if this process is root's. `folder` becomes that user's.
std::string as_ordinary_user(const std::string& folder, std::function<std::string()> body);

}  // namespace kvjit::rt::test
