// Where the stages of programs go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "result.h"

namespace kvjit::tool {

/// A folder that is there, or a name that ends with a slash.
bool names_folder(const std::string& path);

/// Everything is made before anything is written.
class Output {
public:
    /// `path`: a file, or a folder: what names_folder() says, and the place of several stages. Nothing: standard
    /// output.
    Output(std::optional<std::string> path, bool has_several);

    bool has_folder() const { return is_folder_; }
    void add(const std::string& file, const std::string& title, std::string bytes) {
        parts_.push_back({file, title, std::move(bytes)});
    }
    /// `titled`: on standard output, or in one file, each part has its title in front.
    Result<void> write(bool titled) const;

private:
    struct Part {
        std::string file, title, bytes;
    };

    Result<void> write_files() const;

    std::optional<std::string> path_;
    bool is_folder_;
    std::vector<Part> parts_;
};

}  // namespace kvjit::tool
