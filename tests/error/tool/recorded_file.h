// Recorded files to damage: a golden one whose header and bytes can be changed and written out again.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace kvjit::test {

/// The golden file whose name begins with `start`.
std::string golden_file(const std::string& start);

/// Header and data apart; assemble() joins them again.
class RecordedFile {
public:
    explicit RecordedFile(const std::string& path);
    ~RecordedFile();
    RecordedFile(const RecordedFile&) = delete;
    RecordedFile& operator=(const RecordedFile&) = delete;

    nlohmann::json header;
    std::vector<std::byte> data;

    std::span<std::byte> tensor_bytes(const std::string& name);
    std::vector<std::byte> assemble() const;
    /// Writes the file to a temporary path, which lives as long as this object.
    std::string write();

private:
    std::string written_;
};

}  // namespace kvjit::test
