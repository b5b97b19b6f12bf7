// Telling libraries apart without loading them.
#include "cuda/library_identity.h"

#include <elf.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "cuda/elf_view.h"
#include "support.h"
#include "support/temporary_folder.h"

using namespace kvjit;
using test::contains;

namespace {

/// An ELF file of a program header and a note.
std::string with_notes(const std::string& notes, std::uint64_t alignment = 4) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr segment{};
    segment.p_type = PT_NOTE;
    segment.p_offset = sizeof header + sizeof segment;
    segment.p_filesz = notes.size();
    segment.p_align = alignment;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    return bytes.append(reinterpret_cast<const char*>(&segment), sizeof segment) + notes;
}

std::string note(std::uint32_t type, const std::string& owner, const std::string& content) {
    const Elf64_Nhdr header{static_cast<std::uint32_t>(owner.size()), static_cast<std::uint32_t>(content.size()), type};
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    return bytes + owner + content;
}

const std::string kOwner("GNU", 4);

std::string build_id(const std::string& file) {
    const auto elf = rt::ElfView::open(file);
    REQUIRE(elf.has_value());
    return elf->build_id();
}

}  // namespace

TEST_CASE("a build id is found behind other notes") {
    const std::string id = note(NT_GNU_BUILD_ID, kOwner, "\x01\x2f\xab\xff");
    CHECK(build_id(with_notes(id)) == "012fabff");
    CHECK(build_id(with_notes(note(1, kOwner, "abcdefgh") + note(3, std::string("XYZ", 4), "abcd") + id)) ==
          "012fabff");
    CHECK(build_id(with_notes(note(1, kOwner, "abcd"))).empty());
}

TEST_CASE("damaged notes are read no further than they go") {
    const std::string whole = with_notes(note(1, kOwner, "abcd") + note(NT_GNU_BUILD_ID, kOwner, "\x01\x2f\xab\xff"));
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        const std::string cut = whole.substr(0, bytes);  // a copy: reading behind it is seen by a sanitizer
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

TEST_CASE("a library is described by path, size, time and build id") {
    const auto text = rt::describe_library(KVJIT_TEST_FAKE_CUDA);
    REQUIRE(text.has_value());
    CHECK(text->starts_with("libcuda.so.1 " KVJIT_TEST_FAKE_CUDA " size="));
    CHECK(contains(*text, " mtime="));
    CHECK(contains(*text, " build="));
    CHECK(text->ends_with("\n"));
}

TEST_CASE("another time, size or content is another description") {
    const test::TemporaryFolder folder;
    const std::string one = with_notes(note(NT_GNU_BUILD_ID, kOwner, "abcd"));
    const std::string path = folder.write("libone.so", one);
    const auto first = rt::describe_library(path);
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::nanoseconds(1));
    const auto second = rt::describe_library(path);
    REQUIRE(first.has_value());
    CHECK(*first != *second);
    folder.write("libone.so", with_notes(note(NT_GNU_BUILD_ID, kOwner, "abce")));
    CHECK(contains(*rt::describe_library(path), "build=61626365"));
}

TEST_CASE("what is no library has no description") {
    const test::TemporaryFolder folder;
    CHECK_FALSE(rt::describe_library("/nowhere/lib.so").has_value());
    CHECK_FALSE(rt::describe_library(folder.path()).has_value());
    CHECK_FALSE(rt::describe_library("/etc/passwd").has_value());
    CHECK_FALSE(rt::describe_library(folder.write("empty.so", "")).has_value());
}
