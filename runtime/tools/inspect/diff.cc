#include "inspect/diff.h"

#include <filesystem>

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

Result<std::string> text_of(const std::string& given, const InspectOptions& options) {
    if (given.contains(';')) return given;
    if (!is_spec(given)) return read_file(given, kMaxBytes);
    InspectOptions of = options;
    of.spec = given;
    return identities(of);
}

/// `operand`: "before" or "after", as the library's errors have it.
Result<std::string> read(const std::string& operand, const std::string& given, const InspectOptions& options) {
    Result<std::string> text = text_of(given, options);
    if (!text && is_spec(given)) return fail(operand + ": " + text.error());
    if (!text) {
        return fail(operand + ": " + text.error() + "; --diff takes specs, identities, a file that has some, or -");
    }
    if (text->contains('\0')) return fail(operand + ": " + escaped(given) + ": a NUL byte is in no identity");
    return text;
}

/// Programs that are equal, as a sentence says it.
std::string in_words(std::string text) {
    constexpr std::string_view kEqual = ": nothing\n", kSaid = ": nothing differs\n";
    for (std::size_t at = 0; (at = text.find(kEqual, at)) != text.npos; at += kSaid.size()) {
        text.replace(at, kEqual.size(), kSaid);
    }
    return text;
}

Result<std::string> compare(const std::string& before, const std::string& after, const InspectOptions& options) {
    const bool has_spec = is_spec(before) || is_spec(after);
    if (!has_spec && options.target != InspectOptions().target) {
        return fail("--diff of texts takes no --target: they name theirs");
    }

    if (before == "-" && after == "-") return fail("--diff takes - once: there is one standard input");
    const Result<std::string> old = read("before", before, options);
    if (!old) return old;
    const Result<std::string> now = read("after", after, options);
    if (!now) return now;
    kvjit_error error;
    kvjit_error_init(&error);
    std::string text;
    const auto status = kvjit_identity_diff(old->c_str(), now->c_str(), append, &text, &error);
    if (status != KVJIT_OK) return fail(error_text(error));
    return text;
}

}  // namespace

bool is_spec(const std::string& given) {
    std::error_code error;
    return given.contains('=') && !given.contains(';') && !std::filesystem::exists(given, error);
}

Result<int> diff(const std::string& before, const std::string& after, const InspectOptions& options) {
    const Result<std::string> text = compare(before, after, options);
    if (!text) return fail(text.error());
    print(escaped_lines(in_words(*text)));
    if (text->contains("\n  source: ")) {
        print(
            "Sources are told apart by digests. kvjit inspect SPEC --emit source, before and after, has the texts.\n");
    }
    return kExitOk;
}

}  // namespace kvjit::tool
