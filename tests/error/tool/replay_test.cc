// `kvjit replay` and the files that it is given.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "child.h"
#include "recorded_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

TEST_CASE("replay says which file is bad, and goes on") {
    const std::string good = golden_file("000_");
    const ChildResult result = run_kvjit({"replay", "/nonexistent.safetensors", good, "/tmp"});
    CHECK(result.exit_code == 2);
    CHECK(mentions(result.err, "/nonexistent.safetensors"));
    CHECK(mentions(result.err, "/tmp: is a directory, expected a regular file"));
    CHECK(mentions(result.out, "3 passed, 0 failed, 2 could not run"));
}

TEST_CASE("replay says once why a file's operators can't run") {
    setenv("KVJIT_COMPILER", "/nowhere", 1);
    const ChildResult result = run_kvjit({"replay", "--cache-dir", "", golden_file("000_")});
    unsetenv("KVJIT_COMPILER");
    CHECK(result.exit_code == 2);
    CHECK_MESSAGE(mentions(result.err,
                           ": MultiHeadCacheAttention, KeyValueCache, MultiHeadAttention: "
                           "KVJIT_COMPILER_MISSING: "),
                  result.err);
    CHECK(result.err.find("KVJIT_COMPILER_MISSING") == result.err.rfind("KVJIT_COMPILER_MISSING"));
    for (const char* op : {"[op=MultiHeadCacheAttention,", "; op=KeyValueCache,", "; op=MultiHeadAttention,"})
        CHECK(mentions(result.err, op));
    CHECK(mentions(result.out, "0 passed, 0 failed, 3 could not run"));
}

TEST_CASE("replay waits for no writer of a FIFO, and says what is no regular file") {
    const TemporaryFolder folder;
    const std::string fifo = folder.path("fifo");
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    const std::string place = folder.path("socket");
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, place.c_str(), place.size());
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    const ChildResult result = run_kvjit({"replay", fifo, place, "/dev/null", golden_file("000_")});
    close(listener);
    CHECK(result.exit_code == 2);
    CHECK_MESSAGE(mentions(result.err, fifo + ": is a FIFO, expected a regular file"), result.err);
    CHECK_MESSAGE(mentions(result.err, place + ": is a socket, expected a regular file"), result.err);
    CHECK_MESSAGE(mentions(result.err, "/dev/null: is a device, expected a regular file"), result.err);
    CHECK(mentions(result.out, "3 passed, 0 failed, 3 could not run"));
}

TEST_CASE("replay shows a file's name escaped in its table") {
    const TemporaryFolder folder;
    const std::string file = folder.path("a\x1b[2J\nb.safetensors");
    std::filesystem::copy_file(golden_file("000_"), file);
    const ChildResult result = run_kvjit({"replay", file});
    CHECK(result.exit_code == 0);
    CHECK(!has_control_characters(result.out));
    CHECK_MESSAGE(mentions(result.out, "a\\x1b[2J\\x0ab  KeyValueCache"), result.out);
}

TEST_CASE("replay finds a wrong result") {
    RecordedFile file(golden_file("000_"));
    SUBCASE("a changed cache byte") {
        file.tensor_bytes("out.cache")[0] ^= std::byte{1};
    }
    SUBCASE("a changed output") {
        file.tensor_bytes("out.attn_output")[3] ^= std::byte{1};
    }
    SUBCASE("a NaN is expected where none may be") {
        for (std::size_t i = 0; i < 4; ++i) file.tensor_bytes("out.attn_output")[i] = std::byte{0xff};
    }
    SUBCASE("a changed lse") {
        file.tensor_bytes("out.lse")[3] ^= std::byte{1};
    }
    const std::string path = file.write();
    const ChildResult result = run_kvjit({"replay", path});
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(mentions(result.out, "FAIL"));
}

}  // namespace
}  // namespace kvjit::test
