#include "inspect/output.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "bundle/files.h"
#include "command/words.h"
#include "terminal.h"

namespace kvjit::tool {

bool names_folder(const std::string& path) {
    std::error_code error;
    return path.ends_with('/') || std::filesystem::is_directory(path, error);
}

Output::Output(std::optional<std::string> path, bool has_several)
    : path_(std::move(path)), is_folder_(path_ && (has_several || names_folder(*path_))) {}

Result<void> Output::write(bool titled) const {
    if (is_folder_) return write_files();
    std::string all;
    for (const Part& part : parts_) all += (titled ? "==== " + part.title + " ====\n" : "") + part.bytes;
    if (path_) return write_file(*path_, all);
    print(all);
    return {};
}

Result<void> Output::write_files() const {
    std::error_code error;
    std::filesystem::create_directories(*path_, error);
    if (error) return fail(escaped(*path_) + " can't be made: " + error.message());
    for (const Part& part : parts_) {
        if (auto done = write_file((std::filesystem::path(*path_) / part.file).string(), part.bytes); !done)
            return done;
    }
    print(escaped(*path_) + ": " + number_of(std::ssize(parts_), "file") + "\n");
    return {};
}

}  // namespace kvjit::tool
