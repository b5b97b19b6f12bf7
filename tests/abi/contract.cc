// abi_contract check|record CONTRACT HEADER...: whether the library's structs, as it tells them, and the headers'
// numbers and functions are the recorded ones, all of them and no others; or writes them down anew.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

#include "kvjit/kvjit.h"

namespace {

const char kHead[] =
    "// The C ABI on x86-64: docs/abi.md says what may change. Recorded by `ninja -C build record_abi`, on purpose "
    "only.\n";

std::string read(const char* path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string without_comments(std::string text) {
    for (std::size_t begin = 0; (begin = text.find("/*")) != std::string::npos;) {
        text.erase(begin, text.find("*/", begin) + 2 - begin);
    }
    return text;
}

struct Structs {
    std::string text, last;
};

void add_field(void* context, const char* owner, const char* name, const char* type, std::size_t offset,
               std::size_t size) {
    auto* structs = static_cast<Structs*>(context);
    std::ostringstream rows;
    if (structs->last != owner) rows << "\nSTRUCT(" << owner << ", " << kvjit_struct_size(owner) << ")\n";
    rows << "FIELD(" << owner << ", " << name << ", " << type << ", " << offset << ", " << size << ")\n";
    structs->last = owner;
    structs->text += rows.str();
}

std::string struct_rows() {
    Structs structs;
    kvjit_struct_fields(add_field, &structs);
    return structs.text;
}

/// A row for each place in the text that matches, made of `row`, which may name the pattern's groups.
std::string rows(const std::string& text, const char* pattern, const char* row) {
    std::string all = "\n";
    const std::regex expression(pattern);
    for (std::sregex_iterator found(text.begin(), text.end(), expression), end; found != end; ++found) {
        all += found->format(row) + "\n";
    }
    return all;
}

std::string contract(const std::string& header) {
    return kHead + struct_rows() + rows(header, R"((KVJIT_[A-Z0-9_]+) = (-?\d+))", "VALUE($1, $2)") +
           rows(header, R"(#define (KVJIT_MAX_\w+) (\d+))", "VALUE($1, $2)") +
           rows(header, R"(KVJIT_API [^;(]*?(kvjit_\w+)\()", "FUNCTION($1)");
}

/// The first line that differs, for people. 0 if there is none.
int compare(const std::string& now, const std::string& recorded) {
    std::istringstream left(now), right(recorded);
    std::string ours, theirs;
    for (int line = 1; now != recorded; ++line) {
        if (!std::getline(left, ours)) ours = "nothing";
        if (!std::getline(right, theirs)) theirs = "nothing";
        if (ours == theirs) continue;
        std::fprintf(stderr,
                     "line %d: recorded is %s, now there is %s\nWhere that is meant: ninja -C build record_abi\n", line,
                     theirs.c_str(), ours.c_str());
        return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return std::fprintf(stderr, "abi_contract check|record CONTRACT HEADER...\n"), 2;
    std::string headers;
    for (int i = 3; i < argc; ++i) headers += read(argv[i]);
    const std::string now = contract(without_comments(headers));
    if (std::strcmp(argv[1], "record") != 0) return compare(now, read(argv[2]));
    return std::ofstream(argv[2]) << now ? 0 : 1;
}
