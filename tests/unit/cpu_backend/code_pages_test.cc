// Memory for code: both ways to map it, and what is said where there is none.
#include "cpu/code_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "support.h"
#include "support/child_process.h"
#include "support/policy.h"

using namespace kvjit;
using rt::CodeMapping;
using rt::CodePages;

namespace {

constexpr unsigned char kReturn42[] = {0xb8, 42, 0, 0, 0, 0xc3};  // mov eax, 42; ret
constexpr CodeMapping kBoth[] = {CodeMapping::kProtect, CodeMapping::kTwice};

std::size_t page() {
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// The permissions of the mapping at `address`, "r-xp" say; empty: nothing is mapped there.
std::string permissions(const void* address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::size_t dash = 0, space = 0;
        const std::uintptr_t first = std::stoull(line, &dash, 16),
                             past = std::stoull(line.substr(dash + 1), &space, 16);
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        if (at >= first && at < past) return line.substr(dash + 1 + space + 1, 4);
    }
    return "";
}

std::ptrdiff_t open_files() {
    std::ptrdiff_t open = 0;
    for (int fd = 0; fd < 1000; ++fd) open += fcntl(fd, F_GETFD) >= 0;
    return open;
}

/// A page of code and a page of data, sealed.
CodePages code_and_data(CodeMapping mapping) {
    auto pages = CodePages::map(2 * page(), mapping);
    REQUIRE(pages);
    std::memcpy(pages->writable(), kReturn42, sizeof kReturn42);
    pages->writable()[page()] = 7;
    const rt::CodeSegment segments[] = {{0, page(), PROT_READ | PROT_EXEC}, {page(), page(), PROT_READ | PROT_WRITE}};
    REQUIRE(pages->seal(segments));
    return *std::move(pages);
}

}  // namespace

TEST_CASE("pages of code run, pages of data are written, and no file stays open") {
    for (const CodeMapping mapping : kBoth) {
        CAPTURE(static_cast<int>(mapping));
        const std::ptrdiff_t open = open_files();
        void* gone = nullptr;
        {
            const CodePages pages = code_and_data(mapping);
            CHECK(reinterpret_cast<int (*)()>(pages.address())() == 42);
            CHECK(permissions(pages.address()) == "r-xp");
            CHECK(pages.address()[page()]++ == 7);
            CHECK(pages.address()[page()] == 8);
            CHECK(permissions(pages.address() + page()) == "rw-p");
            CHECK(open_files() == open);
            gone = pages.address();
        }
        CHECK(permissions(gone) == "");
    }
}

TEST_CASE("what a forked process writes to data stays its own") {
    for (const CodeMapping mapping : kBoth) {
        CAPTURE(static_cast<int>(mapping));
        const CodePages pages = code_and_data(mapping);
        CHECK(test::in_child([&] { return ++pages.address()[page()]; }) == 8);
        CHECK(pages.address()[page()] == 7);
    }
}

TEST_CASE("pages are writable or executable while they are written, not both; zeros at first; and may be given back") {
    for (const CodeMapping mapping : kBoth) {
        CAPTURE(static_cast<int>(mapping));
        auto pages = CodePages::map(2 * page(), mapping);
        REQUIRE(pages);
        CHECK(permissions(pages->writable()).starts_with("rw-"));
        CHECK(permissions(pages->address())[2] == '-');
        CHECK(std::string_view(pages->writable(), 2 * page()).find_first_not_of('\0') == std::string_view::npos);
        pages->shrink(page());
        CHECK(permissions(pages->address() + page()) == "");
        CHECK(permissions(pages->address()) != "");
    }
}

TEST_CASE("each policy leaves the ways that it leaves") {
    const auto way = [](auto set) {
        return [set] {
            if (!set()) return test::kBroken;
            const auto mapping = rt::code_mapping();
            if (mapping) return static_cast<int>(*mapping);
            return mapping.error().status == KVJIT_BAD_TARGET ? 100 : 101;
        };
    };
    CHECK(test::in_child(way([] { return true; })) == static_cast<int>(CodeMapping::kProtect));
    CHECK(test::in_child(way([] { return test::set_filter(test::Forbidden::kProtect); })) ==
          static_cast<int>(CodeMapping::kTwice));
    CHECK(test::in_child(way([] { return test::set_filter(test::Forbidden::kProtectAndFiles); })) == 100);
}

TEST_CASE("no room for an image is out of memory, not a bad object" * doctest::skip(test::kSanitized)) {
    const std::string object = test::compile(
        "static char room[1 << 28]; extern \"C\" char* caller(int i) { return room + i; }", rt::host_target());
    const auto status = [&] {
        if (!test::limit_address_space(1 << 27)) return test::kBroken;
        const auto image = rt::load_object(object, "caller", "test");
        return image ? test::kBroken : static_cast<int>(image.error().status);
    };
    CHECK(test::in_child(status) == KVJIT_OUT_OF_MEMORY);
}

TEST_CASE("an object that asks for more than any program has is a bad one") {
    const std::string object = test::compile(
        "static char room[3L << 30]; extern \"C\" char* caller(long i) { return room + i; }", rt::host_target());
    const auto image = rt::load_object(object, "caller", "test");
    REQUIRE_FALSE(image.has_value());
    CHECK(image.error().status == KVJIT_BAD_FILE);
}
