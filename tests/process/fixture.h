// Child processes and what they are given.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {

/// What a child said: the lines "name value" of child.cc.
struct Report {
    std::map<std::string, std::string> lines;
    std::string operator[](const std::string& name) const;
    std::int64_t number(const std::string& name) const;
};

/// A running process_child.
class Child {
public:
    /// `environment`: "KVJIT_JIT=off", say. The parent's own KVJIT_* do not reach it.
    explicit Child(const std::string& cache_folder, const std::vector<std::string>& environment = {});
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    /// Waits for its end.
    Report finish();

private:
    std::FILE* output_;
};

Report run_child(const std::string& cache_folder, const std::vector<std::string>& environment = {});

void write_file(const std::string& path, const std::string& bytes);

/// A copy of the source tree's templates that a test may spoil.
class TemplateFolder : public TemporaryFolder {
public:
    TemplateFolder();
};

/// Runs `kvjit bundle create` for kCallSpec and two others. `before`: what stands before the command, `env` and its
/// arguments.
void create_bundle(const std::string& path, const std::string& arguments, const std::string& before = "env");

/// A folder with a bundle, kernels.kvjb, that was made through a cache in it.
class Shipped : public TemporaryFolder {
public:
    /// `targets`: as the command takes them; further options may stand behind.
    explicit Shipped(const std::string& targets = "host");
    std::string bundle() const { return path("kernels.kvjb"); }
    std::string cache() const { return " --cache-dir '" + path("made") + "'"; }
};

/// A store that stores nothing.
inline constexpr char kIdleStore[] =
    "#include \"common/abi.h\"\n"
    "extern \"C\" void kvjit_store(const kvjit::abi::StoreArgs*, const kvjit::abi::TokenItem*) {}\n";

}  // namespace kvjit::test
