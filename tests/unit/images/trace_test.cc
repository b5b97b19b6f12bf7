// What a program asks for, written down as a list of specs.
#include "spec_trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "fakes.h"
#include "generator/spec_list.h"
#include "support/temporary_folder.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;
using kvjit::test::TemporaryFolder;

namespace {

using Texts = std::vector<std::string>;

Texts lines_of(const std::string& path) {
    std::ifstream file(path);
    Texts lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

/// Images that trace to the file.
std::shared_ptr<Images> tracing(World& world, const std::string& path) {
    ImagesOptions options = options_over(world);
    options.trace = std::make_shared<SpecTrace>(path, options.log);
    return std::make_shared<Images>(std::move(options));
}

KernelPtr kernel_of(std::shared_ptr<Images> images, const std::string& spec,
                    const gen::TargetList& targets = two_levels()) {
    return *Kernel::make(std::move(images), spec_of(spec), targets);
}

/// While it lives, no file of this process grows beyond so many bytes. Who tries without care is ended by SIGXFSZ.
class FileLimit {
public:
    explicit FileLimit(std::uintmax_t bytes) {
        REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
        const rlimit limit{static_cast<rlim_t>(bytes), before_.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

private:
    rlimit before_{};
};

}  // namespace

TEST_CASE("each spec, target and program that is asked for is a line, once a process") {
    World world;
    const TemporaryFolder folder;
    const std::string path = folder.path("specs.txt");
    const auto images = tracing(world, path);
    const KernelPtr kernel = kernel_of(images, "t1=f32,head_dim=64");
    CHECK(lines_of(path).empty());  // nothing is asked of it yet
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_DECODE).has_value());
    const std::string begin = "op=MultiHeadCacheAttention,head_dim=64,t1=f32  # target=x86-64-v3 program=";
    CHECK(lines_of(path) == Texts{begin + "decode"});
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_DECODE | KVJIT_PROGRAM_STORE).has_value());
    CHECK(lines_of(path) == Texts{begin + "decode", begin + "store"});
    REQUIRE(kernel_of(images, "t1=f32,head_dim=64")->prepare(KVJIT_PROGRAM_STORE).has_value());
    REQUIRE(kernel_of(tracing(world, path), "t1=f32,head_dim=64")->prepare(KVJIT_PROGRAM_STORE).has_value());
    CHECK(lines_of(path).size() == 2);
    REQUIRE(kernel_of(images, "op=Merge", {*gen::named_target("sm_90a")})->prepare(KVJIT_ALL_PROGRAMS).has_value());
    REQUIRE(kernel_of(images, "op=Merge", {gen::emulated_target(two_levels()[0])})
                ->prepare(KVJIT_ALL_PROGRAMS)
                .has_value());
    gen::Target emulated = gen::emulated_target(two_levels()[0]);
    emulated.wgmma = true;
    REQUIRE(kernel_of(images, "op=Merge", {emulated})->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(lines_of(path) == Texts{begin + "decode", begin + "store", "op=Merge  # target=sm_90a program=merge",
                                  "op=Merge  # target=cuda-emulated program=merge",
                                  "op=Merge  # target=cuda-emulated+wgmma program=merge"});
}

TEST_CASE("a trace is a list of the specs, each once, after what the file held before") {
    World world;
    const TemporaryFolder folder;
    const std::string path = folder.write("specs.txt", "# ours\nop=Merge head_dim={8,16}\n");
    const auto images = tracing(world, path);
    for (const char* spec :
         {"op=Merge,head_dim=16", "quant_bit=8,quant_group=32,layout=L2HTD", "op=Merge,head_dim=24"}) {
        REQUIRE(kernel_of(images, spec)->prepare(KVJIT_ALL_PROGRAMS).has_value());
    }
    std::string text;
    for (const std::string& line : lines_of(path)) text += line + "\n";
    const gen::Result<gen::SpecList> list = gen::parse_spec_list(text, 100);
    REQUIRE(list.has_value());
    Texts specs;
    for (const gen::SpecList::Item& item : list->specs) specs.push_back(gen::print_spec(item.spec));
    CHECK(specs == Texts{"op=Merge,head_dim=8", "op=Merge,head_dim=16",
                         "op=MultiHeadCacheAttention,quant_bit=8,quant_group=32,layout=L2HTD", "op=Merge,head_dim=24"});
}

TEST_CASE("threads that ask at once leave whole lines, each once") {
    World world;
    const TemporaryFolder folder;
    const std::string path = folder.path("specs.txt");
    const auto images = tracing(world, path);
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                for (int size = 8; size <= 512; size += 8) {
                    const gen::KernelSpec spec = spec_of("op=Merge,head_dim=" + std::to_string(size));
                    images->trace()->add(spec, two_levels()[0], *gen::lower(spec, two_levels()[0])->front().info);
                }
            });
        }
    }
    Texts lines = lines_of(path);
    CHECK(lines.size() == 64);
    for (int size = 8; size <= 512; size += 8) {
        const std::string spec = size == 128 ? "op=Merge" : "op=Merge,head_dim=" + std::to_string(size);
        CHECK(std::ranges::count(lines, spec + "  # target=x86-64-v3 program=merge") == 1);
    }
}

TEST_CASE("a line that there is no room for leaves nothing behind, and is written once there is") {
    World world;
    const TemporaryFolder folder;
    const std::string path = folder.path("specs.txt");
    REQUIRE(kernel_of(tracing(world, path), "op=Merge,head_dim=56")->prepare(KVJIT_ALL_PROGRAMS).has_value());
    const Texts first = lines_of(path);
    const std::string full = "op=Merge,head_dim=72";
    {
        const FileLimit limit(std::filesystem::file_size(path) + 10);
        CHECK(kernel_of(tracing(world, path), full)->prepare(KVJIT_ALL_PROGRAMS).has_value());
    }
    CHECK(world.warnings.size() == 1);
    CHECK(lines_of(path) == first);
    REQUIRE(kernel_of(tracing(world, path), full)->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(lines_of(path) == Texts{first[0], full + "  # target=x86-64-v3 program=merge"});
}

TEST_CASE("what can't be written is said once, and fails nothing") {
    const TemporaryFolder folder;
    for (const std::string& path : {folder.path("nowhere/specs.txt"), std::string("/dev/full"), folder.path()}) {
        CAPTURE(path);
        World world;
        const auto images = tracing(world, path);
        CHECK(kernel_of(images, "op=Merge,head_dim=40")->prepare(KVJIT_ALL_PROGRAMS).has_value());
        CHECK(kernel_of(images, "op=Merge,head_dim=48")->prepare(KVJIT_ALL_PROGRAMS).has_value());
        REQUIRE(world.warnings.size() == 1);
        CHECK(world.warnings[0].starts_with("specs are not traced: " + path + " can't be written: "));
    }
}

TEST_CASE("a pipe that no one reads, or no longer, ends and stops nothing") {
    const TemporaryFolder folder;
    const std::string path = folder.path("pipe");
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    World unread;
    CHECK(kernel_of(tracing(unread, path), "op=Merge,head_dim=80")->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(unread.warnings == Texts{"specs are not traced: " + path + " can't be written: No such device or address"});
    World left;
    const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
    REQUIRE(reader >= 0);
    const auto images = tracing(left, path);
    close(reader);
    CHECK(kernel_of(images, "op=Merge,head_dim=88")->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(left.warnings == Texts{"specs are not traced: " + path + " can't be written: Broken pipe"});
}

TEST_CASE("a file that another program keeps locked is given up, once") {
    const TemporaryFolder folder;
    const std::string path = folder.write("specs.txt", "");
    const int holder = open(path.c_str(), O_RDONLY);
    REQUIRE(flock(holder, LOCK_EX) == 0);
    World world;
    const auto images = tracing(world, path);
    for (const char* spec : {"op=Merge,head_dim=96", "op=Merge,head_dim=104"}) {
        CHECK(kernel_of(images, spec)->prepare(KVJIT_ALL_PROGRAMS).has_value());
    }
    CHECK(world.warnings == Texts{"specs are not traced: " + path + " another process has had it locked for 1000 ms"});
    CHECK(lines_of(path).empty());
    close(holder);
}
