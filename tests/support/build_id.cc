#include "support/build_id.h"

#include <fstream>
#include <stdexcept>
#include <string_view>

#include "support/read_file.h"

namespace kvjit::test {
namespace {

/// How the note with a SHA-1 begins: lengths of owner and id, the note's kind, the owner.
constexpr std::string_view kNote{"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0", 16};
constexpr std::size_t kIdBytes = 20;

std::size_t id_offset(const std::string& bytes, const std::string& path) {
    const std::size_t note = bytes.find(kNote);
    if (note == std::string::npos) throw std::runtime_error(path + " has no build id");
    return note + kNote.size();
}

}  // namespace

std::string build_id(const std::string& path) {
    const std::string bytes = read_file(path);
    std::string text;
    for (const char byte : bytes.substr(id_offset(bytes, path), kIdBytes)) {
        for (const int digit : {(byte >> 4) & 15, byte & 15}) text += "0123456789abcdef"[digit];
    }
    return text;
}

void change_build_id(const std::string& path) {
    std::string bytes = read_file(path);
    bytes[id_offset(bytes, path)] ^= 1;
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace kvjit::test
