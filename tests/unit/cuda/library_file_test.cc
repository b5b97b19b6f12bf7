// Telling libraries apart without loading them.
#include "library_file.h"

#include <elf.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "elf_bytes.h"
#include "elf_view.h"
#include "support.h"
#include "support/temporary_folder.h"

using namespace kvjit;
using test::with_notes;

namespace {

std::string note(std::uint32_t type, const std::string& owner, const std::string& content) {
    const Elf64_Nhdr header{static_cast<std::uint32_t>(owner.size()), static_cast<std::uint32_t>(content.size()), type};
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    return bytes + owner + content;
}

const std::string kOwner("GNU", 4);

/// What the library at `path` is told from others by.
std::string description(const std::string& path) {
    const auto library = rt::LibraryFile::open(path);
    REQUIRE(library.has_value());
    return library->describe("libone");
}

void make_older(const std::string& path) {
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::nanoseconds(1));
}

std::string build_id(const std::string& file) {
    const auto elf = rt::ElfView::open(file);
    REQUIRE(elf.has_value());
    return elf->build_id();
}

}  // namespace

TEST_CASE("a build id is found after other notes") {
    const std::string id = note(NT_GNU_BUILD_ID, kOwner, "\x01\x2f\xab\xff");
    CHECK(build_id(with_notes(id)) == "012fabff");
    CHECK(build_id(with_notes(note(1, kOwner, "abcdefgh") + note(3, std::string("XYZ", 4), "abcd") + id)) ==
          "012fabff");
    CHECK(build_id(with_notes(note(1, kOwner, "abcd"))).empty());
}

TEST_CASE("damaged notes are read no further than they go") {
    const std::string whole = with_notes(note(1, kOwner, "abcd") + note(NT_GNU_BUILD_ID, kOwner, "\x01\x2f\xab\xff"));
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        const std::string cut = whole.substr(0, bytes);  // a copy: reading past it is seen by a sanitizer
        if (const auto elf = rt::ElfView::open(cut)) CHECK(elf->build_id().empty());
    }
    for (const std::uint32_t size : {0xffffffffU, 0xfffffffcU, 0x80000000U, 100U}) {
        std::string large = note(NT_GNU_BUILD_ID, kOwner, "abcd");
        std::memcpy(large.data() + 4, &size, sizeof size);
        CHECK(build_id(with_notes(large)).empty());
        std::memcpy(large.data(), &size, sizeof size);
        CHECK(build_id(with_notes(large)).empty());
    }
}

TEST_CASE("a build id tells a library, wherever it lies and whenever it was put there") {
    const test::TemporaryFolder folder;
    const std::string here = folder.write("libone.so", with_notes(note(NT_GNU_BUILD_ID, kOwner, "abcd")));
    CHECK(description(here) == "libone build=61626364\n");
    make_older(here);
    CHECK(description(here) == "libone build=61626364\n");
    std::filesystem::create_directory(folder.path("there"));
    std::filesystem::copy_file(here, folder.path("there/libtwo.so"));
    CHECK(description(folder.path("there/libtwo.so")) == description(here));
    CHECK(description(folder.write("libone.so", with_notes(note(NT_GNU_BUILD_ID, kOwner, "abce")))) !=
          description(folder.path("there/libtwo.so")));
}

TEST_CASE("without a build id, another place, time or size is another description") {
    const test::TemporaryFolder folder;
    const std::string bytes = with_notes(note(1, kOwner, "abcd"));
    const std::string here = folder.write("libone.so", bytes), there = folder.write("libtwo.so", bytes);
    std::filesystem::last_write_time(there, std::filesystem::last_write_time(here));
    const std::string first = description(here);
    CHECK(first.starts_with("libone " + here + " size=" + std::to_string(bytes.size()) + " mtime="));
    CHECK(first.ends_with("\n"));
    CHECK(description(there) != first);
    const auto time = std::filesystem::last_write_time(here);
    make_older(here);
    CHECK(description(here) != first);
    folder.write("libone.so", bytes + '\0');
    std::filesystem::last_write_time(here, time);
    CHECK(description(here) != first);
}

TEST_CASE("what is no library is not opened as one") {
    const test::TemporaryFolder folder;
    CHECK_FALSE(rt::LibraryFile::open("/nowhere/lib.so").has_value());
    CHECK_FALSE(rt::LibraryFile::open(folder.path()).has_value());
    CHECK_FALSE(rt::LibraryFile::open("/etc/passwd").has_value());
    CHECK_FALSE(rt::LibraryFile::open(folder.write("empty.so", "")).has_value());
}
