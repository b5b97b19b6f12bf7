// A process of its own that loads an object and compiles nothing. Says what it had to map by its exit status:
//     load_probe OBJECT ENTRY PLUGIN EXPECTED
// calls `int ENTRY(int)` with 20. 0: right result and nothing of LLVM or Clang mapped, nothing writable and executable.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "cpu/clang_compiler.h"
#include "cpu/loader.h"

namespace {

enum Status { kRight = 0, kUsage = 2, kNotLoaded = 3, kWrongResult = 4, kNoIdentity = 5, kMapped = 6 };

bool maps_hold(const char* text) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find(text) != std::string::npos) return true;
    }
    return false;
}

int probe(const char* path, const char* entry, const char* plugin, int expected) {
    std::ifstream file(path, std::ios::binary);
    const std::string object(std::istreambuf_iterator<char>(file), {});
    if (!kvjit::rt::make_compiler(plugin)->identity()) return kNoIdentity;
    const auto image = kvjit::rt::load_object(object, entry, "probe");
    if (!image) return kNotLoaded;
    if (reinterpret_cast<int (*)(int)>((*image)->entry())(20) != expected) return kWrongResult;
    for (const char* unwanted : {"libkvjit_compiler", "rwx"}) {
        if (maps_hold(unwanted)) return kMapped;
    }
    return kRight;
}

}  // namespace

int main(int count, char** arguments) {
    return count == 5 ? probe(arguments[1], arguments[2], arguments[3], std::atoi(arguments[4])) : kUsage;
}
