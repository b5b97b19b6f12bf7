#include "diff.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "handles.h"
#include "result.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

void append(void* text, const char* piece, size_t size) {
    static_cast<std::string*>(text)->append(piece, size);
}

struct Close {
    void operator()(std::FILE* file) const {
        if (file != stdin) std::fclose(file);
    }
};

std::string failure(const std::string& name) {
    return escaped(name) + ": can't be read: " + std::strerror(errno);
}

/// A pipe will do, too: of `<(kvjit inspect ...)`.
Result<std::string> read_file(const std::string& name) {
    const std::unique_ptr<std::FILE, Close> file(name == "-" ? stdin : std::fopen(name.c_str(), "re"));
    if (!file) return fail(failure(name) + "; --diff takes identities, a file that has some, or -");
    std::string text;
    char block[4096];
    errno = 0;
    for (std::size_t bytes = 0; (bytes = std::fread(block, 1, sizeof block, file.get())) > 0;) {
        text.append(block, bytes);
        if (text.size() > kMaxBytes) return fail(escaped(name) + ": over 1 MiB is more than identities take");
    }
    if (std::ferror(file.get()) != 0) return fail(failure(name));
    return text;
}

Result<std::string> read(const std::string& given) {
    Result<std::string> text = given.contains(';') ? Result<std::string>(given) : read_file(given);
    if (text && text->contains('\0')) return fail(escaped(given) + ": a NUL byte is in no identity");
    return text;
}

Result<std::string> compare(const std::string& before, const std::string& after) {
    if (before == "-" && after == "-") return fail("--diff takes - once: there is one standard input");
    const Result<std::string> old = read(before);
    if (!old) return old;
    const Result<std::string> now = read(after);
    if (!now) return now;
    kvjit_error error;
    kvjit_error_init(&error);
    std::string text;
    const auto status = kvjit_identity_diff(old->c_str(), now->c_str(), append, &text, &error);
    if (status != KVJIT_OK) return fail(error_text(error));
    return text;
}

}  // namespace

int diff(const std::string& before, const std::string& after) {
    const Result<std::string> text = compare(before, after);
    if (text) {
        print(escaped_lines(*text));
        return kExitOk;
    }
    complain(text.error());
    return kExitBadInput;
}

}  // namespace kvjit::tool
