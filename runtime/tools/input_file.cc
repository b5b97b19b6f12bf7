#include "input_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Close {
    void operator()(std::FILE* file) const {
        if (file != stdin) std::fclose(file);
    }
};

std::unexpected<std::string> failure(const std::string& name, const std::string& what) {
    return fail(escaped(name) + " can't be " + what + ": " + std::strerror(errno));
}

}  // namespace

Result<std::string> read_file(const std::string& name, std::size_t max_bytes) {
    const std::unique_ptr<std::FILE, Close> file(name == "-" ? stdin : std::fopen(name.c_str(), "re"));
    if (!file) return failure(name, "opened");
    std::string text;
    char block[65536];
    for (std::size_t bytes = 0; (bytes = std::fread(block, 1, sizeof block, file.get())) > 0;) {
        text.append(block, bytes);
        if (text.size() > max_bytes) {
            return fail(escaped(name) + " has more than " + std::to_string(max_bytes) + " bytes");
        }
    }
    if (std::ferror(file.get()) != 0) return failure(name, "read");
    return text;
}

}  // namespace kvjit::tool
