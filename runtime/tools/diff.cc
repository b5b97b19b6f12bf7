#include "diff.h"

#include "handles.h"
#include "input_file.h"
#include "result.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

/// More than any identities need.
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

void append(void* text, const char* piece, size_t size) {
    static_cast<std::string*>(text)->append(piece, size);
}

Result<std::string> read(const std::string& given) {
    Result<std::string> text = given.contains(';') ? Result<std::string>(given) : read_file(given, kMaxBytes);
    if (!text) return fail(text.error() + "; --diff takes identities, a file that has some, or -");
    if (text->contains('\0')) return fail(escaped(given) + ": a NUL byte is in no identity");
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
