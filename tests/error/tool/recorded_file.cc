#include "recorded_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace kvjit::test {

std::string golden_file(const std::string& start) {
    for (const auto& entry : std::filesystem::directory_iterator(KVJIT_GOLDEN_DIR)) {
        if (entry.path().filename().string().starts_with(start)) return entry.path().string();
    }
    return "";
}

RecordedFile::RecordedFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    header = nlohmann::json::parse(bytes.substr(8, length));
    const std::string tail = bytes.substr(8 + length);
    const auto* begin = reinterpret_cast<const std::byte*>(tail.data());
    data.assign(begin, begin + tail.size());
}

RecordedFile::~RecordedFile() {
    if (!written_.empty()) std::remove(written_.c_str());
}

std::span<std::byte> RecordedFile::tensor_bytes(const std::string& name) {
    const auto& offsets = header[name]["data_offsets"];
    const auto begin = offsets[0].get<std::size_t>();
    return std::span(data).subspan(begin, offsets[1].get<std::size_t>() - begin);
}

std::vector<std::byte> RecordedFile::assemble() const {
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::vector<std::byte> bytes(sizeof length + text.size());
    std::memcpy(bytes.data(), &length, sizeof length);
    std::memcpy(bytes.data() + sizeof length, text.data(), text.size());
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
}

std::string RecordedFile::write() {
    written_ = "/tmp/kvjit-recorded-XXXXXX";
    const int file = mkstemp(written_.data());
    if (file >= 0) close(file);
    const auto bytes = assemble();
    std::ofstream(written_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return written_;
}

}  // namespace kvjit::test
